/* DeepSeek-V4's tensors: their spellings, and what a layer wants
 * (deepseek-v4.md 3). */
#include "models/deepseek_v4_internal.h"

#include <stdio.h>

/* From the published names, and those that save_pretrained() mixes, to the
 * names in memory. */
const struct rename deepseek_renames[] = {
    {".scale$", ".weight_scale_inv"},
    {"_hc.weight_scale_inv$", "_hc.scale"},
    {"^layers.", "model.layers."},
    {"^embed.", "model.embed_tokens."},
    {"^embed_tokens.", "model.embed_tokens."},
    {"^model.embed.", "model.embed_tokens."},
    {"^norm.", "model.norm."},
    {"^hc_head", "model.hc_head"},
    {"^head.", "lm_head."},
    {"^model.head.", "lm_head."},
    {"model.hc_head_", "model.hc_head."},
    {"model.hc_head.hc_", "model.hc_head."},
    {".hc_attn_", ".attn_hc."},
    {".hc_ffn_", ".ffn_hc."},
    {".attn_norm.", ".input_layernorm."},
    {".ffn_norm.", ".post_attention_layernorm."},
    {".attn.", ".self_attn."},
    {".ffn.", ".mlp."},
    {".self_attn.indexer.", ".self_attn.compressor.indexer."},
    {".indexer.compressor.", ".indexer."},
    {".indexer.weights_proj.", ".indexer.scorer.weights_proj."},
    {".compressor.norm.", ".compressor.kv_norm."},
    {".indexer.norm.", ".indexer.kv_norm."},
    {".self_attn.norm.", ".self_attn.kv_norm."},
    {".q_norm.", ".q_a_norm."},
    {".wq_a.", ".q_a_proj."},
    {".wq_b.", ".q_b_proj."},
    {".wkv.", ".kv_proj."},
    {".wgate.", ".gate_proj."},
    {".wo_a.", ".o_a_proj."},
    {".wo_b.", ".o_b_proj."},
    {".attn_sink$", ".sinks"},
    {".ape$", ".position_bias"},
    {".mlp.gate.bias$", ".mlp.gate.e_score_correction_bias"},
    {".w1.", ".gate_proj."},
    {".w3.", ".up_proj."},
    {".w2.", ".down_proj."},
    {NULL, NULL},
};
const char *const deepseek_ignored[] = {"mtp.*", "*.mtp.*", NULL};

static void attention_part(const struct deepseek *m, int64_t i,
                           struct deepseek_layer *l, struct part *p)
{
    int64_t hidden = m->decoder.hidden, queries = m->heads * m->dim;
    struct windows windows = deepseek_windows(m, i),
                   index = deepseek_index_windows(m);
    char at[64], inner[96];

    snprintf(at, sizeof(at), "model.layers.%lld.self_attn", (long long)i);
    part_dense(p, &l->q_a, m->q_rank, hidden, "%s.q_a_proj.weight", at);
    part_dense(p, &l->q_b, queries, m->q_rank, "%s.q_b_proj.weight", at);
    part_dense(p, &l->kv, m->dim, hidden, "%s.kv_proj.weight", at);
    part_dense(p, &l->o_a, m->groups * m->group_rank, queries / m->groups,
               "%s.o_a_proj.weight", at);
    part_dense(p, &l->o_b, hidden, m->groups * m->group_rank,
               "%s.o_b_proj.weight", at);
    p->is_kept = true;
    part_param(p, &l->q_norm, m->q_rank, "%s.q_a_norm.weight", at);
    part_param(p, &l->kv_norm, m->dim, "%s.kv_norm.weight", at);
    part_param(p, &l->sinks, m->heads, "%s.sinks", at);
    p->is_kept = false;
    snprintf(inner, sizeof(inner), "%s.compressor", at);
    if (m->attention[i] != SLIDING)
        compressor_part(&l->compressor, &windows, hidden, p, inner);
    if (m->attention[i] != CSA)
        return;
    snprintf(inner, sizeof(inner), "%s.compressor.indexer", at);
    compressor_part(&l->indexer, &index, hidden, p, inner);
    part_dense(p, &l->index_q, m->index_heads * m->index_dim, m->q_rank,
               "%s.q_b_proj.weight", inner);
    part_dense(p, &l->index_weights, m->index_heads, hidden,
               "%s.scorer.weights_proj.weight", inner);
}

static void ffn_part(const struct decoder *d, int64_t i,
                     struct deepseek_layer *l, struct part *p,
                     const char *prefix)
{
    int64_t hidden = d->hidden, experts = d->experts.count;
    char at[96], in[128];

    snprintf(at, sizeof(at), "%s.mlp", prefix);
    snprintf(in, sizeof(in), "%s.shared_experts", at);
    part_dense(p, &l->common.router, experts, hidden, "%s.gate.weight", at);
    expert_part(&l->common.ffn, p, d->shared_width, hidden, in);
    p->is_kept = true;
    if (deepseek_of(d)->is_hash[i])
        part_ints(p, &l->experts_of_id, d->vocab * d->routing.chosen,
                  "%s.gate.tid2eid", at);
    else
        part_param(p, &l->common.bias, experts,
                   "%s.gate.e_score_correction_bias", at);
    p->is_kept = false;
}

void deepseek_layer_part(const struct decoder *d, int64_t i,
                         struct decoder_weights *w, struct part *p,
                         const char *at)
{
    const struct deepseek *m = deepseek_of(d);
    struct deepseek_layer *l = (struct deepseek_layer *)w;
    char site[96];

    p->is_kept = true;
    snprintf(site, sizeof(site), "%s.attn_hc", at);
    hyper_part(&m->hyper, &l->attention_hyper, p, site);
    snprintf(site, sizeof(site), "%s.ffn_hc", at);
    hyper_part(&m->hyper, &l->ffn_hyper, p, site);
    p->is_kept = false;
    attention_part(m, i, l, p);
    ffn_part(d, i, l, p, at);
}

void deepseek_end_part(struct decoder *d, struct part *p)
{
    struct deepseek *m = (struct deepseek *)d;

    p->is_kept = true;
    hyper_head_part(&m->hyper, &m->head, p, "model.hc_head");
}
