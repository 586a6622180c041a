/* assay-export: what goes into the model.  Arguments and modes; each mode's
 * work is in a file of its own. */
#include "export.h"

#include "base/mem.h"

#include <stdlib.h>

static struct export_options opt = {.at = -1};

static const struct cli_opt options[] = {
    {'p', "pack", "dir", "the checkpoint folder", CLI_STR, &opt.pack},
    {'c', "cases", "file", "the frozen cases", CLI_STR, &opt.cases},
    {0, "case", "name", "one of them; without it all, a folder each", CLI_STR,
     &opt.one_case},
    {0, "protocol", "file", "the frozen rules", CLI_STR, &opt.protocol},
    {'o', "out", "dir", "the folder to make", CLI_STR, &opt.out},
    {'t', "text", "string", "print the ids of a text; - reads stdin", CLI_STR,
     &opt.text},
    {0, "render", "name", "print the rendered prompt of a case", CLI_STR,
     &opt.render},
    {0, "at", "offset", "with --render or --template: what wrote that byte",
     CLI_INT, &opt.at},
    {0, "jsonl", "file", "{\"text\": ...} lines to {\"ids\": [...]} lines",
     CLI_STR, &opt.jsonl},
    {'d', "decode", NULL, "with --jsonl: the other way", CLI_FLAG,
     &opt.is_decode},
    {0, "template", "file", "render any template", CLI_STR, &opt.template},
    {0, "context", "file", "its variables, a JSON object", CLI_STR,
     &opt.context},
    {'i', "image", "file", "describe images, a line each", CLI_LIST,
     &opt.images},
    {0, "resize", "WxH:filter", "with --image: the digest of that size too",
     CLI_STR, &opt.resize},
    {0, "alpha", NULL, "with --image: keep alpha", CLI_FLAG, &opt.is_alpha},
    {0, "ledger", NULL, "what became of each key of the pack", CLI_FLAG,
     &opt.is_ledger},
    {0, "predict", NULL, "print what --out would write and take", CLI_FLAG,
     &opt.is_predict},
    {'j', "json", NULL, "print JSON", CLI_FLAG, &opt.is_json},
    STAGE_OPTIONS(opt.stage),
    STAGE_REUSE(opt.stage),
    {0},
};

static const struct cli_command command = {
    .program = "assay-export",
    .operands = "",
    .about = "Renders, tokenizes and cuts into patches what a frozen case "
             "feeds a model.",
    .options = options,
};

enum mode { CASES, TEXT, RENDER, LINES, TEMPLATE, IMAGES, LEDGER, PREDICT };

/* The options that ask for a mode, what else they need, and what they take. */
static const struct {
    const char *name;
    bool needs_pack, needs_cases, takes_json;
} modes[] = {
    [CASES] = {"--out", true, true, false},
    [TEXT] = {"--text", true, false, true},
    [RENDER] = {"--render", true, true, true},
    [LINES] = {"--jsonl", true, false, true},
    [TEMPLATE] = {"--template", false, false, true},
    [IMAGES] = {"--image", false, false, true},
    [LEDGER] = {"--ledger", true, false, true},
    [PREDICT] = {"--predict", true, true, false},
};

static int choose(enum mode *out, struct err *err)
{
    const bool asked[] = {opt.out != NULL,      opt.text != NULL,
                          opt.render != NULL,   opt.jsonl != NULL,
                          opt.template != NULL, opt.images.count > 0,
                          opt.is_ledger,        opt.is_predict};
    int found = -1;

    for (int i = 0; i < 8; i++)
        if (asked[i]) {
            if (found >= 0)
                return err_set(err, ERR_USAGE, "%s and %s do not go together",
                               modes[found].name, modes[i].name);
            found = i;
        }
    if (found < 0)
        return err_set(err, ERR_USAGE,
                       "say what to do: --out, --text, --render, --jsonl, "
                       "--template, --image, --ledger or --predict");
    *out = (enum mode)found;
    return 0;
}

static int check(enum mode mode, struct err *err)
{
    if (modes[mode].needs_pack && !opt.pack)
        return err_set(err, ERR_USAGE, "%s needs --pack", modes[mode].name);
    if (modes[mode].needs_cases && !opt.cases)
        return err_set(err, ERR_USAGE, "%s needs --cases", modes[mode].name);
    if (!modes[mode].needs_cases && opt.cases)
        return err_set(err, ERR_USAGE, "%s takes no --cases", modes[mode].name);
    if (opt.one_case && mode != CASES)
        return err_set(err, ERR_USAGE, "--case goes with --out");
    if (opt.stage.reuse && mode != CASES)
        return err_set(err, ERR_USAGE, "--reuse goes with --out");
    if ((mode == TEMPLATE) != (opt.context != NULL))
        return err_set(err, ERR_USAGE, "--template and --context go together");
    if (opt.is_decode && mode != LINES)
        return err_set(err, ERR_USAGE, "--decode goes with --jsonl");
    if (opt.resize && mode != IMAGES)
        return err_set(err, ERR_USAGE, "--resize goes with --image");
    if (opt.is_alpha && (mode != IMAGES || opt.pack))
        return err_set(err, ERR_USAGE,
                       "--alpha goes with --image, without --pack");
    if (opt.at >= 0 && mode != RENDER && mode != TEMPLATE)
        return err_set(err, ERR_USAGE, "--at goes with --render or --template");
    if (opt.is_json && opt.at < 0 && (mode == RENDER || mode == TEMPLATE))
        return err_set(err, ERR_USAGE, "%s takes --json only with --at",
                       modes[mode].name);
    if (opt.is_json && !modes[mode].takes_json)
        return err_set(err, ERR_USAGE, "%s takes no --json", modes[mode].name);
    return 0;
}

static int run(int argc, char **argv, struct err *err)
{
    struct cli_list rest = {0};
    struct protocol protocol = {0};
    enum mode mode = CASES;
    int ret = cli_parse(&command, argc, argv, &rest, err);

    free(rest.items);
    if (ret)
        return ret < 0 ? -1 : 0;
    if (choose(&mode, err) || check(mode, err) ||
        protocol_read(opt.protocol, &protocol, err))
        return -1;
    switch (mode) {
    case CASES:
        ret = export_cases(argc, argv, &command, &opt, &protocol, err);
        break;
    case TEXT:
        ret = export_text(&opt, &protocol, err);
        break;
    case RENDER:
        ret = export_render(&opt, &protocol, err);
        break;
    case LINES:
        ret = export_lines(&opt, &protocol, err);
        break;
    case TEMPLATE:
        ret = export_template(&opt, &protocol, err);
        break;
    case IMAGES:
        ret = export_images(&opt, &protocol, err);
        break;
    case PREDICT:
        ret = export_predict(&opt, &protocol, err);
        break;
    case LEDGER:
        ret = export_ledger(&opt, &protocol, err);
        break;
    }
    protocol_release(&protocol);
    return ret;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;

    run(argc, argv, &err);
    free(opt.images.items);
    free(opt.stage.roles.items);
    free(opt.stage.after.items);
    return cli_finish(&command, &err);
}
