/* preprocessor_config.json: every key read, defaulted, ignored or refused. */
#include "image/processor.h"

#include "base/io.h"
#include "base/mem.h"
#include "tap.h"

#include <unistd.h>

static char *folder, *file, *over;

static void put(const char *path, const char *text)
{
    struct err err = ERR_INIT;

    unlink(path);
    if (text && io_write_file(path, text, strlen(text), &err))
        ok(false, "%s", err.text);
}

static struct ledger *ledger;

static int load(struct image_processor *p, struct err *err)
{
    ledger_free(ledger);
    ledger = ledger_new(folder);
    return image_processor_load(ledger, p, err);
}

/* What became of a key: "read 14", "" when the ledger does not name it. */
static bool became(const char *name, const char *key, const char *want)
{
    json_t *all = ledger_json(ledger), *line;
    char got[200] = "";
    size_t i;

    json_array_foreach(json_object_get(all, name), i, line)
    {
        const json_t *value = json_object_get(line, "value");
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

        if (strcmp(json_string_value(json_object_get(line, "key")), key) == 0)
            snprintf(got, sizeof(got), "%s %s",
                     json_string_value(json_object_get(line, "state")),
                     text ? text : "");
        free(text);
    }
    json_decref(all);
    if (strcmp(got, want) != 0)
        diag("%s: '%s', wanted '%s'", key, got, want);
    return strcmp(got, want) == 0;
}

static const char pre[] = "preprocessor_config.json";
static const char whole[] = "processor_config.json";

#define SIZE "\"size\":{\"shortest_edge\":1024,\"longest_edge\":4096}"

static void test_published_form(void)
{
    struct image_processor p;
    struct err err = ERR_INIT;

    put(file,
        "{" SIZE ",\"patch_size\":14,\"temporal_patch_size\":1,"
        "\"merge_size\":3,\"image_mean\":[0.1,0.2,0.3],\"image_std\":"
        "[1,2,4],\"rescale_factor\":0.5,\"processor_class\":\"A\","
        "\"image_processor_type\":\"B\",\"resample\":3,\"do_resize\":true}");
    ok(load(&p, &err) == 0 && p.patch == 14 && p.temporal == 1 &&
           p.merge == 3 && p.min_pixels == 1024 && p.max_pixels == 4096 &&
           p.mean[2] == 0.3f && p.std[1] == 2.0f && p.factor == 0.5f &&
           p.is_rescaled && p.is_normalized,
       "every key of the published form");
    ok(became(pre, "size.shortest_edge", "read 1024") &&
           became(pre, "image_std", "read [1,2,4]") &&
           became(pre, "do_normalize", "defaulted true") &&
           became(pre, "max_pixels", "defaulted 4096") &&
           became(pre, "processor_class", "without effect \"A\"") &&
           became(pre, "resample", "without effect 3"),
       "the ledger says what became of each key");
}

/* mlx-vlm 0.6.3 fails on null, or takes a flag's for false, where Transformers
 * 5.5.0 takes its default. */
static void test_null(void)
{
    static const char *const keys[] = {"patch_size", "temporal_patch_size",
                                       "merge_size", "rescale_factor",
                                       "do_rescale", "do_normalize"};
    struct image_processor p;
    char text[128], says[64];

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct err err = ERR_INIT;

        snprintf(text, sizeof(text), "{" SIZE ",\"%s\":null}", keys[i]);
        snprintf(says, sizeof(says), "config.json: '%s' is null", keys[i]);
        put(file, text);
        ok(load(&p, &err) == -1 && err.code == ERR_INPUT &&
               strstr(err.text, says),
           "refused: %s", says);
    }
}

/* Some published files hold every key there is, most of them null. */
static void test_saved_form(void)
{
    struct image_processor p;
    struct err err = ERR_INIT;

    put(file,
        "{\"crop_size\":null,\"data_format\":\"channels_first\","
        "\"default_to_square\":true,\"device\":null,\"disable_grouping\":"
        "null,\"do_center_crop\":null,\"do_convert_rgb\":true,"
        "\"do_normalize\":true,\"do_pad\":null,\"do_rescale\":true,"
        "\"do_resize\":true,\"image_processor_type\":"
        "\"Qwen2VLImageProcessorFast\",\"input_data_format\":null,"
        "\"max_pixels\":null,\"min_pixels\":null,\"pad_size\":null,"
        "\"resample\":3,\"rescale_factor\":0.00392156862745098,"
        "\"return_tensors\":null,\"size\":{\"height\":null,\"longest_edge\":"
        "4096,\"shortest_edge\":1024}}");
    if (!ok(load(&p, &err) == 0 && p.min_pixels == 1024 &&
                p.max_pixels == 4096 && p.factor == (float)(1 / 255.0),
            "a file that holds every key"))
        diag("%s", err.text);
}

static void test_defaults_and_overrides(void)
{
    struct image_processor p;
    struct err err = ERR_INIT;

    put(file, "{" SIZE ",\"min_pixels\":2048,\"image_mean\":null,"
              "\"do_rescale\":false}");
    ok(load(&p, &err) == 0 && p.patch == 16 && p.temporal == 2 &&
           p.merge == 2 && p.min_pixels == 2048 && p.max_pixels == 4096 &&
           p.mean[0] == 0.5f && p.factor == (float)(1 / 255.0) &&
           !p.is_rescaled,
       "defaults, and min_pixels over the size");
    put(over, "{\"image_processor\":{\"patch_size\":8,\"max_pixels\":9999}}");
    ok(load(&p, &err) == 0 && p.patch == 8 && p.max_pixels == 9999 &&
           p.min_pixels == 2048,
       "processor_config.json's image_processor wins");
    ok(became(whole, "image_processor.patch_size", "read 8") &&
           became(pre, "min_pixels", "read 2048") &&
           became(pre, "merge_size", "defaulted 2"),
       "each key stands where it was read");
    put(over, "{\"image_processor\":{\"depth\":8}}");
    ok(load(&p, &err) == -1 && err.code == ERR_UNSUPPORTED &&
           strstr(err.text, "/processor_config.json: 'image_processor.depth' "
                            "is not known, and may change"),
       "and its keys are checked too: %s", err.text);
    err_clear(&err);
    put(over, "{\"image_processor\":{\"comment\":\"x\"},\"notes\":1}");
    put(file, "{" SIZE ",\"favourite_colour\":\"blue\",\"do_pad\":false,"
              "\"do_flip_channel_order\":false}");
    ok(load(&p, &err) == 0 &&
           became(pre, "favourite_colour", "unread \"blue\"") &&
           became(whole, "image_processor.comment", "unread \"x\"") &&
           became(whole, "notes", "unread 1") &&
           became(pre, "do_flip_channel_order", "unread false"),
       "what nobody knows is listed: %s", err.text);
    put(over, NULL);
}

#define KIMI(settings) "{\"media_proc_cfg\":{" settings "}}"

static void test_kimi(void)
{
    struct image_processor p;
    struct err err = ERR_INIT;
    int64_t w, h;

    put(file, KIMI("\"patch_size\":16,\"sample_fps\":2.0,\"unknown\":1"));
    ok(load(&p, &err) == 0 && p.is_kimi && p.patch == 16 && p.merge == 2 &&
           p.patch_limit == 16384 && p.side_limit == 512 && p.mean[2] == 0.5f &&
           became(pre, "media_proc_cfg.patch_size", "read 16") &&
           became(pre, "media_proc_cfg.in_patch_limit", "defaulted 16384") &&
           became(pre, "media_proc_cfg.unknown", "unread 1"),
       "media_proc_cfg is Kimi's: %s", err.text);
    ok(image_processor_size(&p, 1, 20000, &w, &h, &err) == 0 && w == 32 &&
           h == 8192,
       "no side passes its limit of patches, whatever the other is");
}

static void test_refusals(void)
{
    static const struct {
        const char *text, *says;
        enum err_code code;
    } rows[] = {
        {"[]", "is not an object", ERR_INPUT},
        {"{}", "no 'size' with shortest_edge", ERR_INPUT},
        {KIMI("\"in_patch_limit\":null"), "'in_patch_limit' is null",
         ERR_INPUT},
        {KIMI("\"image_std\":null"), "'image_std' is null", ERR_INPUT},
        {KIMI("\"merge_kernel_size\":[2,1]"), "is not a square",
         ERR_UNSUPPORTED},
        {"{\"size\":{\"shortest_edge\":1}}", "no 'size' with", ERR_INPUT},
        {"{\"size\":{\"height\":224,\"width\":224}}",
         "'size' has a key 'height'", ERR_UNSUPPORTED},
        {"{\"size\":224}", "'size' is not", ERR_INPUT},
        {"{\"size\":{\"shortest_edge\":0,\"longest_edge\":9}}",
         "'size': 'shortest_edge' is 0", ERR_INPUT},
        {"{" SIZE ",\"do_flip_channel_order\":true}",
         "'do_flip_channel_order' is not known, and may change",
         ERR_UNSUPPORTED},
        {"{" SIZE ",\"crop_to_patches\":true}",
         "'crop_to_patches' is not known", ERR_UNSUPPORTED},
        {"{" SIZE ",\"rescale_offset\":0.5}", "'rescale_offset' is not known",
         ERR_UNSUPPORTED},
        {"{" SIZE ",\"patch_size\":0}", "'patch_size' is 0", ERR_INPUT},
        {"{" SIZE ",\"patch_size\":\"14\"}", "'patch_size' is not", ERR_INPUT},
        {"{" SIZE ",\"merge_size\":1000000}", "'merge_size' is 1000000",
         ERR_INPUT},
        {"{" SIZE ",\"image_mean\":[1,2]}", "'image_mean' has 2 values",
         ERR_INPUT},
        {"{" SIZE ",\"image_std\":[1,0,1]}", "of channel 1 cannot be used",
         ERR_INPUT},
        {"{" SIZE ",\"image_std\":[1,\"2\",1]}", "holds no numbers", ERR_INPUT},
        {"{" SIZE ",\"do_resize\":false}", "'do_resize' is false",
         ERR_UNSUPPORTED},
        {"{" SIZE ",\"resample\":2}", "'resample' is not 3", ERR_UNSUPPORTED},
        {"{" SIZE ",\"do_rescale\":1}", "'do_rescale' is not", ERR_INPUT},
        {"{" SIZE "," SIZE "}", "line 1", ERR_INPUT},
        {KIMI("\"fixed_output_tokens\":64"), "'fixed_output_tokens' is set",
         ERR_UNSUPPORTED},
        {KIMI("\"merge_kernel_size\":[2,1]"),
         "'merge_kernel_size' is not a square", ERR_UNSUPPORTED},
        {KIMI("\"merge_kernel_size\":100"), "'merge_kernel_size' is 100",
         ERR_INPUT},
        {KIMI("\"patch_size\":2000"), "'patch_size' is 2000", ERR_INPUT},
        {KIMI("\"image_std\":[1,0,1]"), "of channel 1 cannot be used",
         ERR_INPUT},
        {KIMI("\"crop_to_patches\":true"),
         "'media_proc_cfg.crop_to_patches' is not known", ERR_UNSUPPORTED},
        {"{\"media_proc_cfg\":3}", "'media_proc_cfg' is not an object",
         ERR_INPUT},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct image_processor p;
        struct err err = ERR_INIT;

        put(file, rows[i].text);
        if (!ok(load(&p, &err) == -1 && err.code == rows[i].code &&
                    strstr(err.text, rows[i].says) &&
                    strstr(err.text, "preprocessor_config.json: "),
                "%s", rows[i].text))
            diag("%d: %s", err.code, err.text);
    }
}

/* As Transformers 5 saves a processor; mlx-vlm 0.6.3 reads it so too. */
static void test_processor_alone(void)
{
    struct image_processor p;
    struct err err = ERR_INIT;

    unlink(file);
    put(over, "{\"image_processor\":{" SIZE ",\"patch_size\":14},"
              "\"processor_class\":\"A\"}");
    ok(load(&p, &err) == 0 && p.patch == 14 && p.max_pixels == 4096 &&
           became(whole, "image_processor.size.shortest_edge", "read 1024") &&
           image_processor_is_there(ledger),
       "processor_config.json alone");
    put(over, "{\"image_processor\":{" SIZE ",\"patch_size\":0}}");
    ok(load(&p, &err) == -1 && err.code == ERR_INPUT &&
           strstr(err.text, "/processor_config.json: 'patch_size' is 0"),
       "its errors name it");
    err = (struct err)ERR_INIT;
    put(over, "{\"processor_class\":\"A\"}");
    ok(load(&p, &err) == -1 && err.code == ERR_INPUT &&
           strstr(err.text, "/preprocessor_config.json: No such file") &&
           !image_processor_is_there(ledger),
       "without settings of images the other is missed");
}

/* A size within the limits on both sides, or refused: never another grid. */
static void test_sizes(void)
{
    struct image_processor p = {
        .patch = 16, .merge = 2, .min_pixels = 1, .max_pixels = INT64_MAX};
    struct err err = ERR_INIT;
    int64_t w, h;

    ok(image_processor_size(&p, 16, 16, &w, &h, &err) == 0 && w == 32 &&
           h == 32,
       "a size that rounds to nothing grows to one block");
    p.min_pixels = INT64_MAX;
    ok(image_processor_size(&p, 100, 100, &w, &h, &err) == -1 &&
           err.code == ERR_INPUT,
       "a size past every limit is refused");
}

int main(void)
{
    struct err err = ERR_INIT;
    char template[] = "/tmp/assay-processor-XXXXXX";

    folder = mkdtemp(template);
    if (!folder)
        return 1;
    file = xasprintf("%s/preprocessor_config.json", folder);
    over = xasprintf("%s/processor_config.json", folder);
    test_published_form();
    test_null();
    test_saved_form();
    test_defaults_and_overrides();
    test_kimi();
    test_refusals();
    test_sizes();
    test_processor_alone();
    ok(io_remove_tree(folder, &err) == 0, "the scratch folder is removed");
    free(file);
    free(over);
    ledger_free(ledger);
    return done();
}
