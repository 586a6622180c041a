/*
 * Any bytes as a template, rendered with a fixed context: a result or a clean
 * error, within the budgets.
 */
#include "jinja/jinja.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char context[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"é<b> \\n\"}, "
        "{\"role\": \"assistant\", \"content\": null, \"n\": 1.5}], \"l\": [3, "
        "1, 2], \"d\": {\"a\": 1, \"items\": [true]}, \"s\": \"Hello ΑΣ ß\", "
        "\"x\": 5, \"add_generation_prompt\": true}";
    struct jinja_options o = {"5.5.0", "2026-02-03T04:05:06Z"};
    struct jinja_results r = {.want_spans = true, .want_origins = true};
    struct jinja_origin place;
    struct err err = ERR_INIT;
    struct buf out = BUF_INIT;
    struct jinja_template *t =
        jinja_compile("fuzz", (const char *)data, size, &o, &err);

    if (t &&
        jinja_render_text(t, context, strlen(context), &r, &out, &err) == 0 &&
        out.len &&
        (!jinja_origin_at(&r, &out, 0, &place) ||
         !jinja_origin_at(&r, &out, out.len - 1, &place)))
        abort(); /* every byte has a place that wrote it */
    if (err.code != ERR_NONE && !*err.text)
        abort();
    jinja_free(t);
    jinja_results_release(&r);
    buf_release(&out);
    return 0;
}
