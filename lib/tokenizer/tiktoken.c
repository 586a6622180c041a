#include "tokenizer/tokenizer_internal.h"
int tokenizer_load_tiktoken(struct tokenizer *t, const char *m, const char *c, struct err *err){(void)t;(void)c;return err_set(err,ERR_UNSUPPORTED,"%s: tiktoken ranks are not read yet", m);}
