/* Whether a key that nobody reads looks like a setting of a model. */
#include "ledger/ledger_internal.h"

#include <stdlib.h>
#include <string.h>

/* One of these in a key is enough. */
static const char *const trade[] = {
    "act",       "activation",  "alibi",   "attention",    "attn",
    "bias",      "cap",         "channel", "channels",     "clip",
    "conv",      "crop",        "embed",   "embedding",    "eps",
    "epsilon",   "expert",      "experts", "ffn",          "fps",
    "frames",    "gate",        "gated",   "gating",       "head",
    "heads",     "hidden",      "kv",      "layer",        "layernorm",
    "layers",    "logit",       "logits",  "lora",         "mask",
    "mean",      "merge",       "mlp",     "moe",          "norm",
    "normalize", "patch",       "patches", "pixels",       "position",
    "positions", "qk",          "qkv",     "quantization", "resample",
    "rescale",   "residual",    "resize",  "rms",          "rope",
    "rotary",    "routed",      "router",  "scale",        "scaling",
    "softcap",   "softcapping", "softmax", "std",          "temporal",
    "theta",     "tie",         "tile",    "tiles",        "tiling",
    "vocab",     "window",      "yarn",
};

struct word {
    const char *text;
    size_t len;
};

static int by_word(const void *key, const void *item)
{
    const struct word *w = key;
    const char *other = *(const char *const *)item;
    int order = strncmp(w->text, other, w->len);

    return order ? order : -(other[w->len] != '\0');
}

static bool is_in(const struct word *w, const char *const *list, size_t count)
{
    return bsearch(w, list, count, sizeof(*list), by_word) != NULL;
}

static bool is_small(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_large(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* Letters from `at`, to the end of the word: "softCap" is two. */
static size_t word_length(const char *at)
{
    size_t n = 0;

    while (is_small(at[n]) ||
           (is_large(at[n]) && (n == 0 || !is_small(at[n - 1]))))
        n++;
    return n;
}

bool key_has_meaning(const char *key)
{
    size_t words = 0, known = 0;
    char lower[64];

    for (size_t n; *key; key += n) {
        n = word_length(key);
        if (n == 0) {
            n = 1;
            continue;
        }
        for (size_t i = 0; i < n && i < sizeof(lower); i++)
            lower[i] = is_large(key[i]) ? (char)(key[i] - 'A' + 'a') : key[i];
        struct word w = {lower, n < sizeof(lower) ? n : sizeof(lower)};
        if (is_in(&w, trade, sizeof(trade) / sizeof(trade[0])))
            return true;
        words++;
        known += is_in(&w, setting_words, setting_words_count);
    }
    return words > 0 && known == words;
}
