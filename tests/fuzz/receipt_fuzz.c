/* Any bytes as a receipt and as upstream's listing. */
#include "memory_file.h"
#include "receipt/receipt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct err err = ERR_INIT;
    int fd = memory_file(data, size, path);
    struct receipt r = RECEIPT_INIT, again = RECEIPT_INIT;

    if (receipt_read(&r, path, &err) == 0) {
        /* what was read is written and read again */
        struct buf text = BUF_INIT;
        json_t *root = receipt_json(&r);
        char other[64];

        json_write(root, &text);
        int fd2 = memory_file(text.data, text.len, other);
        if (receipt_read(&again, other, &err))
            abort();
        close(fd2);
        json_decref(root);
        buf_release(&text);
    } else if (err.code == ERR_NONE) {
        abort();
    }
    receipt_release(&r);
    receipt_release(&again);
    err_clear(&err);
    if (receipt_import(&r, path, &err) == 0)
        (void)receipt_strengthen(&r, NULL, NULL, &err);
    receipt_release(&r);
    close(fd);
    return 0;
}
