/* generation_config.json: what ends an answer. */
#include "models/stops.h"

#include <stddef.h>

enum { MAX_TOKEN = (1 << 24) - 1 };
static const char FILE_NAME[] = "generation_config.json";

/* The attributes of transformers' GenerationConfig (5.5.0 and 5.24.0) beside
 * eos_token_id, and what published files hold besides. */
static const char *const without_effect[] = {
    "_commit_hash",
    "_from_model_config",
    "assistant_confidence_threshold",
    "assistant_early_exit",
    "assistant_ensemble_weight",
    "assistant_lookbehind",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "cache_config",
    "cache_implementation",
    "compile_config",
    "constraints",
    "continuous_batching_config",
    "decoder_start_token_id",
    "disable_compile",
    "diversity_penalty",
    "do_sample",
    "dola_layers",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "encoder_repetition_penalty",
    "epsilon_cutoff",
    "eta_cutoff",
    "exponential_decay_length_penalty",
    "force_words_ids",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "frequency_penalty",
    "guidance_scale",
    "is_assistant",
    "length_penalty",
    "low_memory",
    "max_cache_len",
    "max_length",
    "max_matching_ngram_size",
    "max_new_tokens",
    "max_time",
    "min_length",
    "min_new_tokens",
    "min_p",
    "no_repeat_ngram_size",
    "num_assistant_tokens",
    "num_assistant_tokens_schedule",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_logits",
    "output_scores",
    "pad_token_id",
    "padding_token_id",
    "penalty_alpha",
    "prefill_chunk_size",
    "presence_penalty",
    "prompt_lookup_num_tokens",
    "remove_invalid_values",
    "renormalize_logits",
    "repetition_penalty",
    "return_dict_in_generate",
    "sequence_bias",
    "speculation_type",
    "stop_strings",
    "suppress_tokens",
    "target_lookbehind",
    "temperature",
    "token_healing",
    "top_h",
    "top_k",
    "top_p",
    "transformers_version",
    "typical_p",
    "use_cache",
    "use_mtp",
    "watermarking_config",
    NULL,
};

bool stops_has(const struct stops *s, int64_t token)
{
    for (int i = 0; i < s->count; i++)
        if (s->tokens[i] == token)
            return true;
    return false;
}

static int add_one(struct stops *s, const json_t *value, struct err *err)
{
    const int room = (int)(sizeof(s->tokens) / sizeof(s->tokens[0]));
    int64_t id = json_integer_value(value);

    if (!json_is_integer(value) || id < 0 || id > MAX_TOKEN)
        return err_set(err, ERR_INPUT, "'eos_token_id' is no token id");
    if (s->count == room)
        return err_set(err, ERR_UNSUPPORTED, "'eos_token_id' lists too many");
    s->tokens[s->count++] = id;
    return 0;
}

int stops_add(struct stops *s, const json_t *eos, struct err *err)
{
    if (!json_is_array(eos))
        return eos ? add_one(s, eos, err) : 0;
    for (size_t i = 0; i < json_array_size(eos); i++)
        if (add_one(s, json_array_get(eos, i), err))
            return -1;
    return 0;
}

int stops_read(struct stops *s, struct ledger *ledger, bool *is_there,
               struct err *err)
{
    const struct section *root;

    if (ledger_file(ledger, FILE_NAME, &root, err))
        return -1;
    *is_there = root != NULL;
    if (!root)
        return 0;
    config_ignore(root, without_effect);
    if (stops_add(s, config_value(root, "eos_token_id"), err))
        return err_in(err, "%s", config_path(root));
    return ledger_finish(ledger, FILE_NAME, err);
}
