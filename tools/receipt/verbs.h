#ifndef TOOLS_RECEIPT_VERBS_H
#define TOOLS_RECEIPT_VERBS_H

/* Each verb as a main() of its own; argv[0] is the verb. */
int verb_record(int argc, char **argv);
int verb_import(int argc, char **argv);
int verb_verify(int argc, char **argv);
int verb_freeze(int argc, char **argv);
int verb_cases(int argc, char **argv);
int verb_keep(int argc, char **argv);
int verb_executables(int argc, char **argv);
int verb_seal(int argc, char **argv);
int verb_publish(int argc, char **argv);
int verb_audit(int argc, char **argv);
#endif
