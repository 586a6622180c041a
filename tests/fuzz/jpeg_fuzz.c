/* Any bytes as a JPEG. */
#include "image_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_image(data, len);
    return 0;
}
