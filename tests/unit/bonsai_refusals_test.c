/*
 * Damaged packs: each is a copy of the fixture with one thing changed, and is
 * refused when it is opened or first read, with the right status and a line
 * that names the place.  The untouched copy is accepted.
 */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "models/model.h"
#include "safetensors/safetensors.h"
#include "tap.h"
#include "json/json.h"

#include <unistd.h>

static const char source[] = "fixtures/tiny/pack";
static const size_t CAP = (size_t)1 << 30;

struct damage {
    const char *name;
    void (*config)(json_t *root);
    void (*hadamard)(json_t *root);
    void (*generation)(json_t *root);
    bool (*tensor)(char *name, struct tensor *t); /* false: left out */
    const char *extra;                            /* a tensor more */
    int64_t cut; /* bytes cut from the end of the file */
    enum err_code code;
    const char *says;
};

/* ---- writing a copy ---- */

static void copy_json(const char *dir, const char *name, void (*edit)(json_t *))
{
    struct err err = ERR_INIT;
    char *from = path_join(source, name), *to = path_join(dir, name);
    json_t *root = json_read_file(from, &err);

    if (edit)
        edit(root);
    if (!root || json_write_file(root, to, &err))
        diag("%s", err.text);
    json_decref(root);
    free(from);
    free(to);
}

struct copy {
    char name[256];
    struct tensor tensor;
    int handle;
};

static void copy_tensors(const char *dir, const struct damage *d)
{
    struct err err = ERR_INIT;
    struct safetensors *st = safetensors_open_pack(source, &err);
    char *path = path_join(dir, "model.safetensors");
    struct safetensors_writer *w = safetensors_create(path, &err);
    size_t n = safetensors_count(st);
    struct copy *copies = xcalloc(n + 1, sizeof(*copies));
    size_t kept = 0;

    safetensors_set_metadata(w, "format", "mlx", &err);
    for (size_t i = 0; i < n; i++) {
        struct copy *c = &copies[kept];

        snprintf(c->name, sizeof(c->name), "%s", safetensors_at(st, i)->name);
        safetensors_load(st, c->name, CAP, &c->tensor, &err);
        if (d->tensor && !d->tensor(c->name, &c->tensor)) {
            tensor_release(&c->tensor);
            continue;
        }
        kept++;
    }
    if (d->extra) {
        struct copy *c = &copies[kept++];

        snprintf(c->name, sizeof(c->name), "%s", d->extra);
        tensor_init(&c->tensor, DTYPE_F16, SHAPE(2, 2), CAP, &err);
    }
    for (size_t i = 0; i < kept; i++)
        copies[i].handle =
            safetensors_declare(w, copies[i].name, copies[i].tensor.dtype,
                                copies[i].tensor.shape, &err);
    for (size_t i = 0; i < kept; i++) {
        const struct tensor *t = &copies[i].tensor;

        safetensors_write(w, copies[i].handle, 0, t->data,
                          (size_t)shape_bytes(&t->shape, t->dtype), &err);
        tensor_release(&copies[i].tensor);
    }
    if (safetensors_finish(w, &err))
        diag("%s", err.text);
    if (d->cut) {
        int64_t size;
        int fd = io_open(path, &size, &err);

        close(fd);
        if (truncate(path, size - d->cut))
            diag("cannot cut %s", path);
    }
    free(copies);
    free(path);
    safetensors_close(st);
}

static void write_pack(const char *dir, const struct damage *d)
{
    copy_json(dir, "config.json", d->config);
    copy_json(dir, "hadamard.json", d->hadamard);
    copy_json(dir, "generation_config.json", d->generation);
    copy_tensors(dir, d);
}

/* ---- opening it, and one pass that reads every part ---- */

static int ignore_piece(void *ctx, const struct tap_piece *piece,
                        struct err *err)
{
    (void)ctx;
    (void)piece;
    (void)err;
    return 0;
}

static void open_and_run(const char *dir, struct err *err)
{
    static const int64_t ids[] = {1, 2, 3},
                         positions[9] = {0, 1, 2, 0, 1, 2, 0, 1, 2};
    struct sequence s = {.name = "x",
                         .prompt = 3,
                         .rows = 3,
                         .ids = ids,
                         .positions = positions,
                         .position_stride = 3};
    struct forward_options o = {
        .precision = PRECISION_F32, .regime = {512, false}, .chunk = 8};
    struct model_tap tap = {NULL, ignore_piece};
    struct model *m = model_open(dir, false, err);

    if (m && model_check(m, &s, err) == 0)
        model_forward(m, &o, &s, 1, &tap, err);
    model_close(m);
}

/* ---- the damages ---- */

static void set_in(json_t *root, const char *outer, const char *key,
                   json_t *value)
{
    json_object_set_new(outer ? json_object_get(root, outer) : root, key,
                        value);
}

#define EDIT(name, outer, key, value)    \
    static void name(json_t *root)       \
    {                                    \
        set_in(root, outer, key, value); \
    }

EDIT(other_type, NULL, "model_type", json_string("qwen9_9"))
EDIT(other_schema, NULL, "schema_version", json_integer(1))
EDIT(other_base, NULL, "base_model_type", json_string("qwen3"))
EDIT(four_bits, "quantization", "bits", json_integer(4))
EDIT(more_quantization, "quantization", "extra", json_integer(4))
EDIT(tiled_heads, NULL, "gdn_activation_layout", json_string("tiled"))
EDIT(with_mtp, "components", "mtp", json_true())
EDIT(other_eps, "text_config", "rms_norm_eps", json_real(1e-5))
EDIT(no_hidden, "text_config", "hidden_size", json_string("512"))
EDIT(wide_hidden, "text_config", "hidden_size", json_integer(640))
EDIT(zero_layers, "text_config", "num_hidden_layers", json_integer(0))
EDIT(huge_layers, "text_config", "num_hidden_layers", json_integer(1 << 30))
EDIT(odd_heads, "text_config", "num_key_value_heads", json_integer(3))
EDIT(with_bias, "text_config", "attention_bias", json_true())
EDIT(untied, NULL, "tie_word_embeddings", json_false())
EDIT(deepstack, "vision_config", "deepstack_visual_indexes",
     json_pack("[i]", 5))
EDIT(other_positions, "vision_config", "num_position_embeddings",
     json_integer(145))
EDIT(token_past_end, NULL, "image_token_id", json_integer(1 << 20))

static void no_vision_start(json_t *root)
{
    json_object_del(root, "vision_start_token_id");
}

static void other_layer_type(json_t *root)
{
    json_t *types =
        json_object_get(json_object_get(root, "text_config"), "layer_types");

    json_array_set_new(types, 0, json_string("full_attention"));
}

static void other_sections(json_t *root)
{
    json_t *rope = json_object_get(json_object_get(root, "text_config"),
                                   "rope_parameters");

    json_object_set_new(rope, "mrope_section", json_pack("[iii]", 11, 11, 11));
}

static json_t *module_at(json_t *root, size_t i)
{
    return json_array_get(json_object_get(root, "modules"), i);
}

static void same_module_twice(json_t *root)
{
    json_object_set(module_at(root, 1), "path",
                    json_object_get(module_at(root, 0), "path"));
}

static void odd_block(json_t *root)
{
    json_object_set_new(module_at(root, 0), "block", json_integer(500));
}

static void float32_module(json_t *root)
{
    json_object_set_new(module_at(root, 0), "dtype", json_string("float32"));
}

static void linear_as_embedding(json_t *root)
{
    json_object_set_new(module_at(root, 0), "embedding", json_true());
}

#define HADAMARD "prism.hadamard."
EDIT(other_transform, NULL, HADAMARD "transform", json_string("dct"))
EDIT(half_sign, NULL, HADAMARD "sign_values", json_pack("[f]", 0.5))
EDIT(sign_mode, NULL, HADAMARD "sign_mode", json_string("identity"))

static void one_name_less(json_t *root)
{
    json_array_remove(json_object_get(root, HADAMARD "weight_names"), 0);
}

static void zero_sign(json_t *root)
{
    json_array_set_new(json_object_get(root, HADAMARD "sign_values"), 3,
                       json_integer(0));
}

static void no_eos(json_t *root)
{
    json_object_set_new(root, "eos_token_id", json_string("2"));
}

#define LAYER0 "language_model.model.layers.0."

static bool is_at(const char *name, const char *want)
{
    return strcmp(name, want) == 0;
}

static bool no_norm(char *name, struct tensor *t)
{
    (void)t;
    return !is_at(name, LAYER0 "input_layernorm.weight");
}

static bool norm_as_i32(char *name, struct tensor *t)
{
    if (is_at(name, LAYER0 "input_layernorm.weight")) {
        t->dtype = DTYPE_I32;
        t->shape.size[0] /= 2;
    }
    return true;
}

static bool norm_as_i16(char *name, struct tensor *t)
{
    if (is_at(name, LAYER0 "input_layernorm.weight"))
        t->dtype = DTYPE_I16;
    return true;
}

static bool short_norm(char *name, struct tensor *t)
{
    if (is_at(name, LAYER0 "input_layernorm.weight"))
        t->shape.size[0] /= 2;
    return true;
}

static bool torch_layout(char *name, struct tensor *t)
{
    if (is_at(name, "vision_tower.patch_embed.proj.weight"))
        t->shape = SHAPE(t->shape.size[0], 3, 2, 16, 16);
    return true;
}

static bool wrong_sign(char *name, struct tensor *t)
{
    if (is_at(name, LAYER0 "mlp.gate_proj.signs"))
        ((float *)t->data)[7] = 0.5f;
    return true;
}

static bool flipped_sign(char *name, struct tensor *t)
{
    if (is_at(name, LAYER0 "mlp.gate_proj.signs"))
        ((float *)t->data)[7] *= -1;
    return true;
}

static bool no_signs(char *name, struct tensor *t)
{
    (void)t;
    return !is_at(name, LAYER0 "mlp.gate_proj.signs");
}

static bool code_three(char *name, struct tensor *t)
{
    if (is_at(name, LAYER0 "mlp.gate_proj.weight"))
        ((uint32_t *)t->data)[5] |= 3u << 6;
    return true;
}

static bool code_three_in_embedding(char *name, struct tensor *t)
{
    if (is_at(name, "language_model.model.embed_tokens.weight"))
        ((uint32_t *)t->data)[t->shape.size[1] * t->shape.size[0] - 1] |= 3u;
    return true;
}

static bool negative_scale(char *name, struct tensor *t)
{
    if (is_at(name, LAYER0 "mlp.gate_proj.scales"))
        ((uint16_t *)t->data)[2] |= 0x8000;
    return true;
}

static bool infinite_scale(char *name, struct tensor *t)
{
    if (is_at(name, LAYER0 "mlp.gate_proj.scales"))
        ((uint16_t *)t->data)[2] = 0x7c00;
    return true;
}

static bool other_bias(char *name, struct tensor *t)
{
    if (is_at(name, LAYER0 "mlp.gate_proj.biases"))
        ((uint16_t *)t->data)[2] ^= 1;
    return true;
}

static const struct damage damages[] = {
    {.name = "another model_type",
     .config = other_type,
     .code = ERR_UNSUPPORTED,
     .says = "'qwen9_9'"},
    {.name = "schema 1",
     .config = other_schema,
     .code = ERR_UNSUPPORTED,
     .says = "schema_version"},
    {.name = "another base model",
     .config = other_base,
     .code = ERR_UNSUPPORTED,
     .says = "base_model_type"},
    {.name = "four bits",
     .config = four_bits,
     .code = ERR_UNSUPPORTED,
     .says = "quantization: 'bits'"},
    {.name = "a further quantization key",
     .config = more_quantization,
     .code = ERR_UNSUPPORTED,
     .says = "quantization"},
    {.name = "tiled value heads",
     .config = tiled_heads,
     .code = ERR_UNSUPPORTED,
     .says = "gdn_activation_layout"},
    {.name = "a prediction module",
     .config = with_mtp,
     .code = ERR_UNSUPPORTED,
     .says = "mtp"},
    {.name = "another eps",
     .config = other_eps,
     .code = ERR_UNSUPPORTED,
     .says = "rms_norm_eps"},
    {.name = "a width that is text",
     .config = no_hidden,
     .code = ERR_INPUT,
     .says = "'hidden_size' is not an integer"},
    {.name = "a width that the tensors have not",
     .config = wide_hidden,
     .code = ERR_INPUT,
     .says = "640"},
    {.name = "no layers",
     .config = zero_layers,
     .code = ERR_INPUT,
     .says = "num_hidden_layers"},
    {.name = "too many layers",
     .config = huge_layers,
     .code = ERR_INPUT,
     .says = "num_hidden_layers"},
    {.name = "heads that do not divide",
     .config = odd_heads,
     .code = ERR_INPUT,
     .says = "num_key_value_heads"},
    {.name = "attention bias",
     .config = with_bias,
     .code = ERR_UNSUPPORTED,
     .says = "attention_bias"},
    {.name = "contradicting tie flags",
     .config = untied,
     .code = ERR_INPUT,
     .says = "tie_word_embeddings"},
    {.name = "deepstack layers",
     .config = deepstack,
     .code = ERR_UNSUPPORTED,
     .says = "deepstack_visual_indexes"},
    {.name = "a position table that is no square",
     .config = other_positions,
     .code = ERR_INPUT,
     .says = "num_position_embeddings"},
    {.name = "an image token past the vocabulary",
     .config = token_past_end,
     .code = ERR_INPUT,
     .says = "image_token_id"},
    {.name = "no vision_start_token_id",
     .config = no_vision_start,
     .code = ERR_INPUT,
     .says = "no 'vision_start_token_id'"},
    {.name = "a contradicting layer type",
     .config = other_layer_type,
     .code = ERR_INPUT,
     .says = "layer_types"},
    {.name = "rotary sections that do not add up",
     .config = other_sections,
     .code = ERR_INPUT,
     .says = "mrope_section"},
    {.name = "a module twice",
     .config = same_module_twice,
     .code = ERR_INPUT,
     .says = "twice"},
    {.name = "an odd block",
     .config = odd_block,
     .code = ERR_INPUT,
     .says = "block 500"},
    {.name = "a float32 module",
     .config = float32_module,
     .code = ERR_UNSUPPORTED,
     .says = "'dtype' is 'float32'"},
    {.name = "a linear layer as embedding",
     .config = linear_as_embedding,
     .code = ERR_INPUT,
     .says = "only model.embed_tokens"},
    {.name = "another transform",
     .hadamard = other_transform,
     .code = ERR_UNSUPPORTED,
     .says = "hadamard.json: 'prism.hadamard."},
    {.name = "sign vectors that are too short",
     .hadamard = half_sign,
     .code = ERR_INPUT,
     .says = "sign_widths"},
    {.name = "identity signs",
     .hadamard = sign_mode,
     .code = ERR_UNSUPPORTED,
     .says = "sign_mode"},
    {.name = "a rotated weight not listed",
     .hadamard = one_name_less,
     .code = ERR_INPUT,
     .says = "weight_names"},
    {.name = "a zero in the manifest's signs",
     .hadamard = zero_sign,
     .code = ERR_INPUT,
     .says = "neither +1 nor -1"},
    {.name = "a stop token that is text",
     .generation = no_eos,
     .code = ERR_INPUT,
     .says = "generation_config.json: 'eos_token_id'"},
    {.name = "a tensor missing",
     .tensor = no_norm,
     .code = ERR_INPUT,
     .says = "no tensor '" LAYER0 "input_layernorm.weight'"},
    {.name = "a tensor more",
     .extra = "language_model.extra",
     .code = ERR_INPUT,
     .says = "'language_model.extra' has no place"},
    {.name = "a norm of another shape and type",
     .tensor = norm_as_i32,
     .code = ERR_INPUT,
     .says = "input_layernorm.weight"},
    {.name = "a norm of integers",
     .tensor = norm_as_i16,
     .code = ERR_INPUT,
     .says = "is I16"},
    {.name = "a norm of half the width",
     .tensor = short_norm,
     .code = ERR_INPUT,
     .says = "is [256], not [512]"},
    {.name = "a patch kernel in PyTorch's layout",
     .tensor = torch_layout,
     .code = ERR_INPUT,
     .says = "patch_embed"},
    {.name = "a sign that is neither +1 nor -1",
     .tensor = wrong_sign,
     .code = ERR_INPUT,
     .says = "element 7 is neither +1 nor -1"},
    {.name = "a sign that differs from the manifest",
     .tensor = flipped_sign,
     .code = ERR_INPUT,
     .says = "element 7 differs from hadamard.json"},
    {.name = "no sign vector",
     .tensor = no_signs,
     .code = ERR_INPUT,
     .says = "gate_proj.signs"},
    {.name = "a code 3",
     .tensor = code_three,
     .code = ERR_INPUT,
     .says = "mlp.gate_proj"},
    {.name = "a code 3 in the last row of the embedding",
     .tensor = code_three_in_embedding,
     .code = ERR_INPUT,
     .says = "model.embed_tokens"},
    {.name = "a negative scale",
     .tensor = negative_scale,
     .code = ERR_INPUT,
     .says = "mlp.gate_proj"},
    {.name = "an infinite scale",
     .tensor = infinite_scale,
     .code = ERR_INPUT,
     .says = "mlp.gate_proj"},
    {.name = "a bias that is not the negated scale",
     .tensor = other_bias,
     .code = ERR_INPUT,
     .says = "mlp.gate_proj"},
    {.name = "tensors cut short",
     .cut = 4,
     .code = ERR_INPUT,
     .says = "model.safetensors"},
};

static void try_one(const char *root, size_t i, const struct damage *d)
{
    struct err err = ERR_INIT, ignored = ERR_INIT;
    char *dir = xasprintf("%s/%zu", root, i);

    io_make_dirs(dir, &ignored);
    write_pack(dir, d);
    open_and_run(dir, &err);
    if (!ok(err.code == d->code, "%s is refused with %d", d->name,
            (int)d->code) ||
        (d->says &&
         !ok(strstr(err.text, d->says) != NULL, "%s: says so", d->name)))
        diag("%d %s", (int)err.code, err.text);
    io_remove_tree(dir, &ignored);
    free(dir);
}

int main(void)
{
    static const struct damage none = {.name = "the pack itself",
                                       .code = ERR_NONE};
    char root[] = "/tmp/bonsai_refusals.XXXXXX";
    struct err err = ERR_INIT;

    if (!io_is_dir(source))
        skip_all("no fixtures/tiny");
    if (!mkdtemp(root))
        return 1;
    try_one(root, 0, &none);
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++)
        try_one(root, i + 1, &damages[i]);
    io_remove_tree(root, &err);
    return done();
}
