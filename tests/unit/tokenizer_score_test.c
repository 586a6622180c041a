/*
 * A Unigram's scores as upstream reads them: the vocabulary of
 * Tokenizer.from_str(...).to_str() (tokenizers 0.22.2 and 0.23.3).
 */
#include "tap.h"
#include "tokenizer/score.h"

#include <string.h>

static const struct {
    const char *text;
    double want;
} good[] = {
    {"-3.0123284804704786", -3.012328480470478},
    {"-14.825037124029805", -14.825037124029803},
    {"-1.2806287645399461", -1.280628764539946},
    {"-2.8858324831345237", -2.8858324831345237},
    {"-3.8858324831345237", -3.8858324831345241},
    {"-0", -0.0},
    {"-7", -7.0},
    {"1E5", 1e5},
    {"123456789012345678901234567890", 1.2345678901234568e29},
    {"18446744073709551615.5", 18446744073709551616.0},
    {"1844674407370955161.59", 1.8446744073709553e18},
    {"12345678901234567890123.456e-10", 1234567890123.4568},
    {"2.2250738585072011e-308", 2.2250738585072014e-308},
    {"-4.9e-324", -4.9406564584124654e-324},
    {"1e-400", 0.0},
    {"0e99999999999", 0.0},
};
static const char *const bad[] = {"1e400", "-1.8e308", "1e99999999999"};

int main(void)
{
    double got;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        got = 1;
        bool is_read = score_read(good[i].text, strlen(good[i].text), &got);

        ok(is_read && memcmp(&got, &good[i].want, sizeof(got)) == 0,
           "%s is %a, got %a", good[i].text, good[i].want, got);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok(!score_read(bad[i], strlen(bad[i]), &got), "%s is out of range",
           bad[i]);
    return done();
}
