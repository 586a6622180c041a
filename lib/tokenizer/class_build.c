/* The classes that build anew, after transformers'
 * models/NAME/tokenization_NAME.py. */
#include "tokenizer/class.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define SPLIT_LETTERS(letters, other)                                         \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?" letters "+|\\p{N}|" \
    " ?[^\\s\\p{L}" other "\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const char bar[] = "\xe2\x96\x81"; /* U+2581 */

void rebuild_release(struct rebuild *r)
{
    json_decref(r->normalizer);
    json_decref(r->pre_tokenizer);
    json_decref(r->decoder);
    json_decref(r->post_processor);
    free(r->unk_token);
    *r = (struct rebuild){0};
}

static json_t *plain(const char *type)
{
    return json_pack("{s:s}", "type", type);
}

static json_t *replace(const char *from, const char *to)
{
    return json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern",
                     "String", from, "content", to);
}

static const json_t *get(const struct section *config, const char *key)
{
    return config ? config_value(config, key) : NULL;
}

static json_t *byte_level(const struct section *config, bool use_regex)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel",
                     "add_prefix_space",
                     json_is_true(get(config, "add_prefix_space")),
                     "trim_offsets", 1, "use_regex", use_regex);
}

static json_t *sequence(const char *key, json_t *first, json_t *second)
{
    return json_pack("{s:s, s:[o, o]}", "type", "Sequence", key, first, second);
}

static void split_letters(struct rebuild *r, const struct section *config,
                          const char *pattern)
{
    r->normalizer = plain("NFC");
    r->pre_tokenizer = sequence("pretokenizers",
                                json_pack("{s:s, s:{s:s}, s:s, s:b}", "type",
                                          "Split", "pattern", "Regex", pattern,
                                          "behavior", "Isolated", "invert", 0),
                                byte_level(config, false));
    r->decoder = byte_level(NULL, true);
}

static void build_qwen2(struct rebuild *r, const struct section *config)
{
    split_letters(r, config, SPLIT_LETTERS("\\p{L}", ""));
}

static void build_qwen3_5(struct rebuild *r, const struct section *config)
{
    split_letters(r, config, SPLIT_LETTERS("[\\p{L}\\p{M}]", "\\p{M}"));
}

static void build_gpt2(struct rebuild *r, const struct section *config)
{
    r->pre_tokenizer = byte_level(config, true);
    r->decoder = byte_level(NULL, true);
}

static void build_gpt_neox(struct rebuild *r, const struct section *config)
{
    build_gpt2(r, config);
    r->normalizer = plain("NFC");
}

static void build_cohere(struct rebuild *r, const struct section *config)
{
    r->normalizer = plain("NFC");
    r->pre_tokenizer = sequence(
        "pretokenizers",
        json_pack("{s:s, s:b}", "type", "Digits", "individual_digits", 1),
        byte_level(config, true));
    r->decoder = byte_level(NULL, true);
}

/* Pieces of U+2581, then bytes, to text. */
static json_t *bar_decoder(void)
{
    return json_pack("{s:s, s:[o, o, o]}", "type", "Sequence", "decoders",
                     replace(bar, " "), plain("ByteFallback"), plain("Fuse"));
}

/* Metaspace instead of a normalizer; decoding may drop the space it put. */
static void build_bars(struct rebuild *r, const char *scheme, bool is_dropped)
{
    r->pre_tokenizer =
        json_pack("{s:s, s:s, s:s, s:b, s:b}", "type", "Metaspace",
                  "replacement", bar, "prepend_scheme", scheme, "split", 0,
                  "add_prefix_space", strcmp(scheme, "never") != 0);
    r->decoder = bar_decoder();
    if (is_dropped)
        json_array_append_new(json_object_get(r->decoder, "decoders"),
                              json_pack("{s:s, s:s, s:i, s:i}", "type", "Strip",
                                        "content", " ", "start", 1, "stop", 0));
    r->fuse_unk = r->byte_fallback = true;
}

static bool adds_prefix_space(const struct section *config)
{
    const json_t *flag = get(config, "add_prefix_space");

    return !flag || json_is_null(flag) || json_is_true(flag);
}

static void build_llama(struct rebuild *r, const struct section *config)
{
    bool adds = adds_prefix_space(config);
    bool is_legacy = json_is_true(get(config, "legacy"));

    build_bars(r, !adds ? "never" : is_legacy ? "always" : "first", adds);
}

static void build_code_llama(struct rebuild *r, const struct section *config)
{
    build_bars(r, adds_prefix_space(config) ? "first" : "never", true);
}

static void build_gemma(struct rebuild *r, const struct section *config)
{
    (void)config;
    r->normalizer = replace(" ", bar);
    r->pre_tokenizer =
        json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern",
                  "String", " ", "behavior", "MergedWithPrevious", "invert", 0);
    r->decoder = bar_decoder();
    r->fuse_unk = r->byte_fallback = true;
}

static const struct class_kind kinds[] = {
    {.name = "Qwen2Tokenizer",
     .build = build_qwen2,
     .specials = {"unk_token", "<|endoftext|>", "eos_token", "<|endoftext|>",
                  "pad_token", "<|endoftext|>"},
     .again = AGAIN_AS_TEXT},
    {.name = "Qwen3_5Tokenizer",
     .build = build_qwen3_5,
     .specials = {"unk_token", "<|endoftext|>", "eos_token", "<|endoftext|>",
                  "pad_token", "<|endoftext|>"}},
    {.name = "GPT2Tokenizer",
     .build = build_gpt2,
     .specials = {"unk_token", "<|endoftext|>", "bos_token", "<|endoftext|>",
                  "eos_token", "<|endoftext|>"}},
    {.name = "CodeGenTokenizer",
     .build = build_gpt2,
     .specials = {"unk_token", "<|endoftext|>", "bos_token", "<|endoftext|>",
                  "eos_token", "<|endoftext|>"}},
    {.name = "GPTNeoXTokenizer",
     .build = build_gpt_neox,
     .specials = {"unk_token", "<|endoftext|>", "bos_token", "<|endoftext|>",
                  "eos_token", "<|endoftext|>", "pad_token", "<|padding|>"},
     .drops_frames_5_24 = true},
    {.name = "CohereTokenizer",
     .build = build_cohere,
     .specials = {"unk_token", "<UNK>", "bos_token", "<BOS_TOKEN>", "eos_token",
                  "<|END_OF_TURN_TOKEN|>", "pad_token", "<PAD>", "cls_token",
                  "<CLS>", "sep_token", "<SEP>", "mask_token", "<MASK_TOKEN>"},
     .again = AGAIN_AS_THEY_ARE},
    {.name = "LlamaTokenizer",
     .build = build_llama,
     .specials = {"unk_token", "<unk>", "bos_token", "<s>", "eos_token",
                  "</s>"}},
    {.name = "CodeLlamaTokenizer",
     .build = build_code_llama,
     .has_unk = true,
     .puts_bos = true,
     .specials = {"unk_token", "<unk>", "bos_token", "<s>", "eos_token", "</s>",
                  "prefix_token", "\xe2\x96\x81<PRE>", "middle_token",
                  "\xe2\x96\x81<MID>", "suffix_token", "\xe2\x96\x81<SUF>",
                  "eot_token", "\xe2\x96\x81<EOT>", "fill_token", "<FILL_ME>"}},
    {.name = "GemmaTokenizer",
     .build = build_gemma,
     .has_unk = true,
     .specials = {"unk_token", "<unk>", "bos_token", "<bos>", "eos_token",
                  "<eos>", "pad_token", "<pad>", "mask_token", "<mask>"}},
};

const struct class_kind *class_kind_find(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}
