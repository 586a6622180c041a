/* The causal convolution, whole and cut into calls. */
#include "kernel_data.h"
#include "kernels/conv.h"

static void test_order(int64_t channels, int64_t taps, int64_t tokens)
{
    float *rows = data_fill((taps - 1 + tokens) * channels, data_normal),
          *x = rows + (taps - 1) * channels,
          *w = data_fill(channels * taps, data_normal),
          *y = data_array(tokens * channels, 4);
    double *wide = data_widen(rows, (taps - 1 + tokens) * channels),
           *ww = data_widen(w, channels * taps),
           *yy = data_array(tokens * channels, 8);
    int wrong = 0;

    conv_causal(y, rows, x, w, channels, taps, tokens);
    conv_causal_f64(yy, wide, wide + (taps - 1) * channels, ww, channels, taps,
                    tokens);
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t c = 0; c < channels; c++) {
            volatile float sum = 0;
            double exact = 0;

            for (int64_t i = 0; i < taps; i++) {
                volatile float product =
                    rows[(t + i) * channels + c] * w[c * taps + i];

                sum = sum + product;
                exact += wide[(t + i) * channels + c] * ww[c * taps + i];
            }
            wrong += y[t * channels + c] != sum;
            wrong += fabs(yy[t * channels + c] - exact) > 1e-15;
        }
    is_int(wrong, 0, "each product and addition rounded, ascending taps");
    free(rows), free(w), free(y), free(wide), free(ww), free(yy);
}

/* Calls of 1, 2, 3 ... tokens with the state carried along. */
static void test_pieces(int threads)
{
    const int64_t channels = 37, taps = 4, tokens = 45;
    float *x = data_fill(tokens * channels, data_hard),
          *w = data_fill(channels * taps, data_normal),
          *whole = data_array(tokens * channels, 4),
          *part = data_array(tokens * channels, 4),
          *state = data_array((taps - 1) * channels, 4);

    set_threads(threads);
    conv_causal(whole, state, x, w, channels, taps, tokens);
    for (int64_t t = 0, n = 1; t < tokens; t += n, n++) {
        n = tokens - t < n ? tokens - t : n;
        conv_causal(part + t * channels, state, x + t * channels, w, channels,
                    taps, n);
        conv_advance(state, x + t * channels, channels, taps, n);
    }
    is_mem(part, whole, (size_t)(tokens * channels) * 4,
           "pieces give the whole's bits");
    is_mem(state, x + (tokens - 3) * channels, (size_t)channels * 12,
           "the state is the last three rows");
    free(x), free(w), free(whole), free(part), free(state);
}

int main(void)
{
    test_order(1, 1, 1);
    test_order(10, 4, 6);
    test_order(33, 4, 2);
    test_order(7, 2, 9);
    for (int n = 1; n <= 3; n++)
        test_pieces(n);
    set_threads(1);
    return done();
}
