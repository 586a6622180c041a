/* Numbers as text: the fewest digits that read back. */
#include "tap.h"
#include "json/json.h"

#include <math.h>
#include <stdlib.h>

/* The digits are those of Python 3.11's repr(); the layout is %g's. */
static const struct {
    double value;
    const char *want;
} reals[] = {
    {0.0, "0"},
    {-0.0, "-0"},
    {0.1, "0.1"},
    {-2.5, "-2.5"},
    {123456.75, "123456.75"},
    {100.0, "1e+02"},
    {0.0001, "0.0001"},
    {0.00001, "1e-05"},
    {5e-324, "5e-324"},
    {1.7976931348623157e308, "1.7976931348623157e+308"},
    {0x1p-24, "5.960464477539063e-08"},
    {-0x1p-24, "-5.960464477539063e-08"},
    {0x1p-44, "5.684341886080802e-14"},
    {0x1p-1022, "2.2250738585072014e-308"},
    {9007199254740993.0, "9007199254740992"},
    {NAN, "NaN"},
    {-INFINITY, "-Infinity"},
};

int main(void)
{
    char text[32];
    int misread = 0, longest = 0;

    for (size_t i = 0; i < sizeof(reals) / sizeof(reals[0]); i++) {
        json_format_real(reals[i].value, text);
        is_str(text, reals[i].want, "the fewest digits");
    }
    for (int e = -1074; e <= 1023; e++) {
        char digits[20];
        int exponent;
        size_t n = json_shortest_digits(ldexp(1.0, e), digits, &exponent);

        json_format_real(ldexp(1.0, e), text);
        misread += strtod(text, NULL) != ldexp(1.0, e);
        longest = (int)n > longest ? (int)n : longest;
    }
    is_int(misread, 0, "every power of two reads back");
    is_int(longest, 17, "none takes more than 17 digits");
    return done();
}
