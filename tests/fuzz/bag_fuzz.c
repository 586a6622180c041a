/* Any bytes as a bag's manifest; and as its four tag files, 0xff between them.
 */
#include "base/mem.h"
#include "evidence/bag.h"

#include <stdlib.h>
#include <string.h>

static void parse(const uint8_t *data, size_t size, struct bag_files *files,
                  json_t *faults)
{
    char *text = xmalloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    bag_manifest_parse(text, size, "manifest", files, faults);
    bag_check_folded(files, faults);
    for (size_t i = 0; i < files->count; i++)
        if (!bag_find(files, files->items[i].path))
            abort();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bag bag = BAG_INIT;
    json_t *faults = json_array();

    /* what the manifest lists is found, and found as listed */
    parse(data, size, &bag.payload, faults);
    for (int i = BAG_TAGS - 1; i >= 0 && size; i--) {
        const uint8_t *end = memchr(data, 0xff, size);
        size_t n = end ? (size_t)(end - data) : size;

        buf_addstr(&bag.text[i], "");
        buf_add(&bag.text[i], data, n);
        if (i == BAG_TAG_MANIFEST)
            parse(data, n, &bag.tags, faults);
        data += n + (end != NULL);
        size -= n + (end != NULL);
    }
    bag_judge(&bag, faults);
    json_decref(faults);
    bag_release(&bag);
    return 0;
}
