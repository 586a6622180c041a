/*
 * What upstream's AutoTokenizer makes of a pack's tokenizer_class.  Most
 * classes take tokenizer.json as it is; a class with a constructor of its own
 * keeps vocabulary, merges, added tokens and post-processor, and builds
 * everything else anew.  Follows transformers 5.5.0:
 * models/{qwen2,gpt2,llama}/tokenization_*.py,
 * models/auto/tokenization_auto.py.
 */
#include "base/mem.h"
#include "tokenizer/tokenizer_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char qwen2_pattern[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

/* Model types whose packs name a wrong class: upstream takes the file. */
static const char *const file_types[] = {
    "arctic",
    "chameleon",
    "chatlm",
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_vl",
    "deepseek_vl_hybrid",
    "deepseek_vl_v2",
    "fuyu",
    "h2ovl_chat",
    "hyperclovax_vlm",
    "internlm2",
    "internvl_chat",
    "jamba",
    "janus",
    "kimi_k25",
    "llava",
    "llava_next",
    "minicpmv",
    "minimax_m2",
    "modernbert",
    "molmo",
    "molmo2",
    "nemotron",
    "nvfp4",
    "opencua",
    "openvla",
    "phi3",
    "phi3_v",
    "phimoe",
    "step3p5",
    "vipllava",
    "cohere_asr",
    "glm",
    "glm4",
    "glm4_moe",
    "glm4_moe_lite",
    "glm4v",
    "glm4v_moe",
    "glm_image",
    "glmasr",
    "got_ocr2",
    "olmo3",
    "olmo_hybrid",
    "qwen3_5",
    "qwen3_5_moe",
};

static const char *const file_classes[] = {
    "TokenizersBackend",
    "PreTrainedTokenizer",
    "Qwen3_5Tokenizer",
    "GemmaTokenizer",
};

static bool is_one_of(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

void rebuild_release(struct rebuild *r)
{
    json_decref(r->normalizer);
    json_decref(r->pre_tokenizer);
    json_decref(r->decoder);
    *r = (struct rebuild){0};
}

static json_t *byte_level(bool add_prefix_space, bool use_regex)
{
    return json_pack("{s:s, s:b, s:b}", "type", "ByteLevel", "add_prefix_space",
                     add_prefix_space, "use_regex", use_regex);
}

static void make_qwen2(struct rebuild *r, bool add_prefix_space)
{
    r->normalizer = json_pack("{s:s}", "type", "NFC");
    r->pre_tokenizer =
        json_pack("{s:s, s:[{s:s, s:{s:s}, s:s, s:b}, o]}", "type", "Sequence",
                  "pretokenizers", "type", "Split", "pattern", "Regex",
                  qwen2_pattern, "behavior", "Isolated", "invert", 0,
                  byte_level(add_prefix_space, false));
    r->decoder = json_pack("{s:s}", "type", "ByteLevel");
}

static void make_gpt2(struct rebuild *r, bool add_prefix_space)
{
    r->pre_tokenizer = byte_level(add_prefix_space, true);
    r->decoder = json_pack("{s:s}", "type", "ByteLevel");
}

static void make_llama(struct rebuild *r, bool add_prefix_space, bool is_legacy)
{
    static const char bar[] = "\xe2\x96\x81";

    r->pre_tokenizer =
        json_pack("{s:s, s:s, s:s, s:b, s:b}", "type", "Metaspace",
                  "replacement", bar, "prepend_scheme",
                  !add_prefix_space ? "never"
                  : is_legacy       ? "always"
                                    : "first",
                  "split", 0, "add_prefix_space", add_prefix_space);
    r->decoder = json_pack("{s:s, s:[{s:s, s:{s:s}, s:s}, {s:s}, {s:s}]}",
                           "type", "Sequence", "decoders", "type", "Replace",
                           "pattern", "String", bar, "content", " ", "type",
                           "ByteFallback", "type", "Fuse");
    if (add_prefix_space)
        json_array_append_new(json_object_get(r->decoder, "decoders"),
                              json_pack("{s:s, s:s, s:i, s:i}", "type", "Strip",
                                        "content", " ", "start", 1, "stop", 0));
    r->fuse_unk = r->byte_fallback = true;
}

/* Is version a.b older than 5.24, where LlamaTokenizer began to fall back? */
static bool is_before_5_24(const char *version)
{
    int major = 5, minor = 5;

    if (version)
        sscanf(version, "%d.%d", &major, &minor);
    return major < 5 || (major == 5 && minor < 24);
}

/* Special tokens are never added to a rendered prompt, nothing is truncated or
 * padded, and decoding is not cleaned up; the rest describes the file. */
static const char *const unused[] = {
    "add_bos_token",
    "add_eos_token",
    "add_prefix_space",
    "added_tokens_decoder",
    "additional_special_tokens",
    "auto_map",
    "backend",
    "chat_template",
    "clean_up_tokenization_spaces",
    "do_lower_case",
    "errors",
    "is_local",
    "legacy",
    "max_length",
    "model_input_names",
    "model_max_length",
    "name_or_path",
    "pad_to_multiple_of",
    "padding_side",
    "pretokenize_regex",
    "processor_class",
    "sp_model_kwargs",
    "special_tokens_map_file",
    "tokenizer_file",
    "truncation_side",
    "use_fast",
    NULL,
};

/* Each would change ids. */
static const char *const off[] = {"split_special_tokens", "fix_mistral_regex"};

static int make(struct tokenizer *t, const struct section *config,
                const char *type, struct rebuild *out, bool *is_rebuilt,
                struct err *err)
{
    const json_t *prefix = config_value(config, "add_prefix_space");
    bool add_prefix = json_is_true(prefix);
    char name[100];
    size_t len = (size_t)snprintf(name, sizeof(name), "%s", t->class_name);

    if (len > 4 && len < sizeof(name) && strcmp(name + len - 4, "Fast") == 0)
        name[len - 4] = '\0';
    if (type &&
        is_one_of(file_types, sizeof(file_types) / sizeof(file_types[0]), type))
        return 0;
    if (is_one_of(file_classes, sizeof(file_classes) / sizeof(file_classes[0]),
                  name))
        return 0;
    *is_rebuilt = true;
    if (strcmp(name, "Qwen2Tokenizer") == 0) {
        make_qwen2(out, add_prefix);
    } else if (strcmp(name, "GPT2Tokenizer") == 0) {
        make_gpt2(out, add_prefix);
    } else if (strcmp(name, "LlamaTokenizer") == 0) {
        const json_t *legacy = config_value(config, "legacy");

        *is_rebuilt = is_before_5_24(t->transformers);
        make_llama(out, !prefix || add_prefix, json_is_true(legacy));
    } else {
        *is_rebuilt = false;
        if (t->rule == TOKENIZER_CLASS)
            return err_set(err, ERR_UNSUPPORTED,
                           "tokenizer_config.json: what tokenizer_class '%s' "
                           "makes of tokenizer.json is not known here",
                           t->class_name);
        tokenizer_warn(t,
                       "tokenizer_class '%s' is not known here: tokenizer.json "
                       "is taken as it is",
                       t->class_name);
    }
    return 0;
}

int class_check(const struct section *config, struct err *err)
{
    for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
        if (config_expect_flag(config, off[i], false, err))
            return -1;
    config_ignore(config, unused);
    return 0;
}

int class_read(struct tokenizer *t, struct rebuild *out, bool *is_rebuilt,
               struct err *err)
{
    const struct section *config, *model;

    *is_rebuilt = false;
    if (ledger_file(t->ledger, "tokenizer_config.json", &config, err) ||
        ledger_file(t->ledger, "config.json", &model, err))
        return -1;
    if (!config)
        return 0;
    if (class_check(config, err))
        return -1;
    const char *type =
        model ? json_string_value(config_value(model, "model_type")) : NULL;
    const char *name =
        json_string_value(config_value(config, "tokenizer_class"));
    if (!name)
        return 0;
    t->class_name = xstrdup(name);
    return make(t, config, type, out, is_rebuilt, err);
}
