#ifndef IMAGE_PROCESSOR_INTERNAL_H
#define IMAGE_PROCESSOR_INTERNAL_H

#include "image/processor.h"

/* processor_kimi.c: Kimi's processor, by the functions of processor.h. */
int kimi_settings(const struct section *media, struct image_processor *out,
                  struct err *err);
int kimi_size(const struct image_processor *p, int64_t width, int64_t height,
              int64_t *new_width, int64_t *new_height, struct err *err);
int kimi_patches(const struct image_processor *p, const struct image *image,
                 enum image_passes passes, float *rows, struct err *err);

/* ERR_INPUT for null where upstream fails on it. */
int processor_check_null(const struct section *s, const char *key,
                         struct err *err);

/* Three numbers under a key; what they are is their default. */
int processor_read_colors(const struct section *s, const char *key,
                          float out[3], struct err *err);

/* ERR_INPUT for a mean that is not finite, or a deviation that is 0 too. */
int processor_check_colors(const struct image_processor *p, struct err *err);

/* Becomes `what` pixels: refused past the limits of an image. */
int processor_check_size(int64_t width, int64_t height, double new_width,
                         double new_height, struct err *err);
#endif
