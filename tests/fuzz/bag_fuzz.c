/* Any bytes as a bag's manifest. */
#include "base/mem.h"
#include "evidence/bag.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bag_files files = BAG_FILES_INIT;
    json_t *faults = json_array();
    char *text = xmalloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    bag_manifest_parse(text, size, "manifest", &files, faults);
    bag_check_folded(&files, faults);
    for (size_t i = 0; i < files.count; i++)
        if (!bag_find(&files, files.items[i].path))
            abort();
    free(text);
    json_decref(faults);
    bag_files_release(&files);
    return 0;
}
