"""Kimi-K3 in torch from its specification, with the bf16 rounding points of its
remote code: what the recordings' parity-ledger.json was computed with.

    Pass(pack, torch.float32).run(ids)        sums in f32, rounded to bf16
    Pass(pack, torch.float64).run(ids)        the same points of exact sums
    Pass(pack, torch.float64, False)          nothing rounded

Every rounding has a site, "layer1.f_b".  `coins`, when it is a list, gets those
values that lie so near a midpoint of two bf16 that the error of f32 sums decides;
`flips`, a set of (site, element), lets some fall the other way.
"""

import json
import math
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

HALF_ULP = 2.0**-24  # of f32, relative


def to_bf16(x):
    """Nearest even, once, from any float type, kept in that type."""
    fraction, exponent = torch.frexp(x)
    return torch.ldexp(torch.round(fraction * 256), exponent - 8)


class Coin(NamedTuple):
    row: int  # the token
    site: str
    at: tuple  # the element of what is rounded there
    value: float
    margin: float  # from the midpoint
    bound: float  # of the error of the same steps in f32


class Pass:
    def __init__(self, pack, sums, rounds=True):
        pack = Path(pack)
        config = json.loads((pack / "config.json").read_text())
        self.c = config.get("text_config", config)
        self.eps = self.c.get("rms_norm_eps", 1e-6)
        self.t, self.rounds = sums, rounds
        self.coins, self.flips, self.rows = None, set(), None
        self.w = {}
        for path in sorted(pack.glob("*.safetensors")):
            if path.name.startswith("states"):
                continue
            for name, value in load_file(path).items():
                if value.is_floating_point():  # all become bf16 when loaded as bf16
                    value = value.bfloat16() if rounds else value
                    self.w[name.removeprefix("language_model.")] = value.to(sums)

    # ---- rounding ----

    def b(self, site, x, terms=4, scale=None):
        """x to bf16; it came of `terms` steps on values that sum to `scale`."""
        if not self.rounds:
            return x
        y = to_bf16(x)
        if self.coins is not None:
            self._note(site, x, y, terms, x.abs() if scale is None else scale)
        for at in [f[1] for f in self.flips if f[0] == site]:
            up = x[at] > y[at] or (x[at] == y[at])
            step = torch.ldexp(torch.ones((), dtype=x.dtype), torch.frexp(y[at])[1] - 8)
            y[at] += step if up else -step
        return y

    def _note(self, site, x, y, terms, scale):
        step = torch.ldexp(torch.ones_like(x), torch.frexp(x)[1] - 8)
        margin = (step / 2 - (x - y).abs()).abs()
        bound = terms * HALF_ULP * scale
        for at in torch.nonzero(margin <= bound).tolist():
            at = tuple(at)
            row = at[0] if self.rows is None else self.rows[at[0]].item()
            coin = Coin(row, site, at, x[at].item(), margin[at].item(), bound[at].item())
            self.coins.append(coin)

    def linear(self, site, x, name):
        w = self.w[name + ".weight"]
        scale = F.linear(x.abs(), w.abs()) if self.coins is not None else None
        return self.b(site, F.linear(x, w), x.shape[-1], scale)

    def norm(self, site, x, name, eps):
        y = self.b(site + ".normed", x * torch.rsqrt(x.pow(2).mean(-1, True) + eps))
        return self.b(site, self.w[name + ".weight"] * y, 1)

    # ---- parts ----

    def mix(self, site, prefix, blocks, name):
        if not blocks:
            return prefix
        w = self.w[name + "_norm.weight"] * self.w[name + "_proj.weight"].reshape(-1)
        v = torch.stack(blocks + [prefix], 1)
        scores = (v * torch.rsqrt(v.pow(2).mean(-1, True) + self.eps) * w).sum(-1)
        share = torch.softmax(scores, -1)[..., None]
        return self.b(site, (share * v).sum(1), v.shape[-1], (share * v.abs()).sum(1))

    def unit(self, site, gate, up):
        beta = self.c.get("activation_situ_beta") or 1.0
        linear = self.c.get("activation_situ_linear_beta")
        if self.c.get("hidden_act", "silu") == "silu":
            return self.b(site, self.b(site + ".silu", F.silu(gate)) * up, 1)
        up = linear * torch.tanh(up / linear) if linear else up
        return self.b(site, beta * torch.tanh(gate / beta) * torch.sigmoid(gate) * up, 12)

    def mlp(self, site, x, name, gate="gate_proj", up="up_proj", down="down_proj"):
        g = self.linear(f"{site}.gate", x, f"{name}.{gate}")
        u = self.linear(f"{site}.up", x, f"{name}.{up}")
        return self.linear(f"{site}.down", self.unit(f"{site}.unit", g, u), f"{name}.{down}")

    def short(self, site, x, name, heads, dim, taps):
        u = self.linear(f"{site}.{name[-1]}", x, f"{name}_proj")
        w = self.w[f"{name}_conv1d.weight"].reshape(-1, taps)
        padded = F.pad(u, (0, 0, taps - 1, 0))
        y = sum(padded[j : j + len(x)] * w[:, j] for j in range(taps))
        scale = sum(padded[j : j + len(x)].abs() * w[:, j].abs() for j in range(taps))
        y = self.b(f"{site}.{name[-1]}_conv", F.silu(y), taps + 4, scale)
        return y.view(-1, heads, dim)

    def kda(self, site, x, name):
        c = self.c["linear_attn_config"]
        heads, dim = c["num_heads"], c["head_dim"]
        taps = c.get("short_conv_kernel_size", 4)
        q, k, v = (self.short(site, x, f"{name}.{n}", heads, dim, taps) for n in "qkv")
        low = self.linear(f"{site}.f_a", x, f"{name}.f_a_proj")
        z = self.linear(f"{site}.f_b", low, f"{name}.f_b_proj").view(-1, heads, dim)
        z = z + self.w[f"{name}.dt_bias"].reshape(heads, dim)
        rate = self.w[f"{name}.A_log"].reshape(-1)[:heads, None].exp()
        bound = c.get("gate_lower_bound")
        if bound is None:
            g = -rate * F.softplus(z)
        else:
            g = bound * torch.sigmoid(rate * z)
        beta = torch.sigmoid(self.linear(f"{site}.b", x, f"{name}.b_proj"))
        q = q * torch.rsqrt(q.pow(2).sum(-1, True) + 1e-6) * dim**-0.5
        k = k * torch.rsqrt(k.pow(2).sum(-1, True) + 1e-6)
        state, out = torch.zeros(heads, dim, dim, dtype=self.t), []
        for t in range(len(x)):
            state = state * g[t].exp()[..., None]
            delta = v[t] - torch.einsum("hkv,hk->hv", state, k[t])
            state = state + k[t][..., None] * (beta[t][:, None] * delta)[:, None]
            out.append(torch.einsum("hkv,hk->hv", state, q[t]))
        o = torch.stack(out)
        scale = o.abs() + o.pow(2).mean(-1, True).sqrt()
        o = self.b(f"{site}.o", o.flatten(1), 4 * dim, scale.flatten(1)).view(-1, heads, dim)
        if c.get("use_full_rank_gate"):
            gate = self.linear(f"{site}.gate", x, f"{name}.g_proj")
        else:
            low = self.linear(f"{site}.gate_a", x, f"{name}.g_a_proj")
            gate = self.linear(f"{site}.gate", low, f"{name}.g_b_proj")
        y = o * torch.rsqrt(o.pow(2).mean(-1, True) + self.eps)
        y = y * self.w[f"{name}.o_norm.weight"] * torch.sigmoid(gate.view(-1, heads, dim))
        y = self.b(f"{site}.gated", y.flatten(1), 8)
        return self.linear(f"{site}.mixer", y, f"{name}.o_proj")

    def mla(self, site, x, name):
        c, rows = self.c, len(x)
        heads, rank = c["num_attention_heads"], c["kv_lora_rank"]
        nope, rope, value = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
        if c.get("q_lora_rank"):
            low = self.linear(f"{site}.q_a", x, f"{name}.q_a_proj")
            low = self.norm(f"{site}.q_norm", low, f"{name}.q_a_layernorm", 1e-6)
            q = self.linear(f"{site}.q", low, f"{name}.q_b_proj")
        else:
            q = self.linear(f"{site}.q", x, f"{name}.q_proj")
        q = q.view(rows, heads, nope + rope)
        low = self.linear(f"{site}.kv_a", x, f"{name}.kv_a_proj_with_mqa")
        c_kv = self.norm(f"{site}.kv_norm", low[:, :rank], f"{name}.kv_a_layernorm", 1e-6)
        kv = self.linear(f"{site}.kv", c_kv, f"{name}.kv_b_proj").view(rows, heads, -1)
        shared = low[:, None, rank:].expand(rows, heads, rope)
        k, v = torch.cat([kv[..., :nope], shared], -1), kv[..., nope:]
        q, k, v = (part.transpose(0, 1) for part in (q, k, v))
        scores = (q @ k.transpose(1, 2)) * (nope + rope) ** -0.5
        hidden = torch.ones(rows, rows, dtype=torch.bool).triu(1)
        share = torch.softmax(scores.masked_fill(hidden, -math.inf), -1)
        o = (share @ v).transpose(0, 1).reshape(rows, -1)
        scale = (share @ v.abs()).transpose(0, 1).reshape(rows, -1)
        o = self.b(f"{site}.o", o, nope + rope + rows, scale)
        if c.get("mla_use_output_gate"):
            gate = torch.sigmoid(self.linear(f"{site}.gate", x, f"{name}.g_proj"))
            o = self.b(f"{site}.gated", o * self.b(f"{site}.sigmoid", gate), 1)
        return self.linear(f"{site}.mixer", o, f"{name}.o_proj")

    def choose(self, scores):
        c, rows = self.c, len(scores)
        groups, kept = c.get("num_expert_group", 1), c.get("topk_group", 1)
        if c.get("use_grouped_topk", True) and groups > kept:
            parts = scores.view(rows, groups, -1)
            best = parts.topk(2, -1).values.sum(-1).topk(kept, -1).indices
            mask = torch.ones(rows, groups, dtype=torch.bool).scatter_(1, best, False)
            scores = parts.masked_fill(mask[..., None], -math.inf).view(rows, -1)
        return scores.topk(c["num_experts_per_token"], -1, sorted=False).indices

    def moe(self, site, x, name, stages):
        c = self.c
        logits = F.linear(x, self.w[f"{name}.gate.weight"])
        stages[f"{site}.router"] = logits
        is_softmax = c.get("moe_router_activation_func", "sigmoid") == "softmax"
        scores = torch.softmax(logits, -1) if is_softmax else torch.sigmoid(logits)
        chosen = self.choose(scores + self.w[f"{name}.gate.e_score_correction_bias"])
        weight = scores.gather(1, chosen)
        if chosen.shape[1] > 1 and c.get("moe_renormalize", True):
            weight = weight / (weight.sum(-1, True) + 1e-20)
        weight = weight * c.get("routed_scaling_factor", 1.0)
        latent = c.get("routed_expert_hidden_size")
        z = x
        if latent:
            z = self.linear(f"{site}.latent", x, f"{name}.routed_expert_down_proj")
        slots = torch.zeros(*chosen.shape, z.shape[1], dtype=self.t)
        for e in range(c["num_experts"]):
            rows, slot = (chosen == e).nonzero(as_tuple=True)
            if len(rows) == 0:
                continue
            self.rows = rows
            part = self.mlp(f"{site}.expert{e}", z[rows], f"{name}.experts.{e}", "w1", "w3", "w2")
            self.rows = None
            slots[rows, slot] = part * weight[rows, slot, None]
        y = self.b(f"{site}.experts", slots.sum(1), 8, slots.abs().sum(1))
        if latent and c.get("latent_moe_use_norm"):
            y = self.norm(f"{site}.latent_norm", y, f"{name}.routed_expert_norm", self.eps)
        if latent:
            y = self.linear(f"{site}.latent_up", y, f"{name}.routed_expert_up_proj")
        if c.get("num_shared_experts"):
            shared = self.mlp(f"{site}.shared", x, f"{name}.shared_experts")
            y = self.b(f"{site}.mlp", y + shared, 1, y.abs() + shared.abs())
        return y

    # ---- the whole ----

    def is_sparse(self, i):
        c = self.c
        first, every = c.get("first_k_dense_replace", 0), c.get("moe_layer_freq", 1)
        return bool(c.get("num_experts")) and i >= first and i % every == 0

    @torch.inference_mode()
    def run(self, ids):
        """The states after the final norm, and all stages."""
        c, stages, blocks = self.c, {}, []
        every = c.get("attn_res_block_size")
        linear = c["linear_attn_config"]["kda_layers"]
        prefix = self.w["model.embed_tokens.weight"][torch.tensor(ids)]
        stages["input_embeds"] = prefix
        for i in range(c["num_hidden_layers"]):
            site, name = f"layer{i}", f"model.layers.{i}"
            h = self.mix(f"{site}.mix", prefix, blocks, f"{name}.self_attention_res")
            starts = every and i % every == 0
            if starts:
                blocks = blocks + [prefix]
            x = self.norm(f"{site}.input", h, f"{name}.input_layernorm", self.eps)
            mixer = self.kda if i + 1 in linear else self.mla
            y = stages[f"{site}.mixer"] = mixer(site, x, f"{name}.self_attn")
            if starts:
                prefix = y
            else:
                prefix = self.b(f"{site}.add", prefix + y, 1, prefix.abs() + y.abs())
            h = self.mix(f"{site}.mlp_mix", prefix, blocks, f"{name}.mlp_res")
            x = self.norm(f"{site}.post", h, f"{name}.post_attention_layernorm", self.eps)
            if self.is_sparse(i):
                y = self.moe(site, x, f"{name}.block_sparse_moe", stages)
            else:
                y = self.mlp(f"{site}.dense", x, f"{name}.mlp")
            stages[f"{site}.mlp"] = y
            prefix = self.b(f"{site}.out", prefix + y, 1, prefix.abs() + y.abs())
            stages[f"{site}.out"] = prefix
        h = self.mix("end.mix", prefix, blocks, "model.output_attn_res")
        states = stages["final_norm"] = self.norm("end.norm", h, "model.norm", self.eps)
        return states, stages
