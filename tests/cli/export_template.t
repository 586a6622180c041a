#!/bin/sh
# export --template: any template with any variables.
. tests/support/tap.sh
export=$(bin export)
put() { printf '%s' "$2" >"$T/$1"; }
render() { # STATUS NAME
    runs "$1" "$2" "$export" --template "$T/t" --context "$T/c" --protocol "$T/p"
}
put p '{"now": "2026-02-03T04:05:06Z"}'
put t '{% for m in messages %}
{{ m.role }}: {{ m["content"] | trim }}{{ "\n" }}
{%- endfor %}
{{ strftime_now("%d %b %Y") }}
'
put c '{"messages": [{"role": "user", "content": " hé "}, {"role": "x", "content": ""}]}'
render 0 "a template renders"
# jinja2 3.1.6 in the environment of transformers 5.5.0, one final newline dropped
is "$(od -c <"$T/out")" "$(printf 'user: hé\nx: \n03 Feb 2026' | od -c)" "as upstream does"
at() { # STATUS NAME OPTIONS...
    want=$1 name=$2
    shift 2
    runs "$want" "$name" "$export" --template "$T/t" --context "$T/c" --protocol "$T/p" "$@"
}
at 0 "what wrote a byte" --at 0
is "$(cat "$T/out")" "$(printf '%s/t\t2\t4' "$T")" "its template, line and column"
at 0 "a string written by the template" --at 9
is "$(cat "$T/out")" "$(printf '%s/t\t2\t43' "$T")" "its expression"
at 0 "as JSON" --at 14 --json
is "$(tr -d '\n' <"$T/out")" "{  \"offset\": 14,  \"template\": \"$T/t\",  \"line\": 4,  \"column\": 4}" "of the same fields"
at 3 "a byte past the end" --at 25
says "no byte 25: 25 were rendered" "is named"
at 2 "JSON without --at" --json
runs 2 "--at without a template" "$export" --image "$T/t" --at 1
put p '{}'
render 3 "no clock"
one_line "one line"
put p '{"now": "2026-02-03T04:05:06Z"}'
# plain text of several lines, in a loop and with CR: each character's own place
printf 'a\r\n\303\251b{%% for m in messages %%}x\ny{%% endfor %%}\rz' >"$T/t"
i=0
for place in '1\t1' '1\t2' '2\t1' '2\t1' '2\t2' '2\t26' '2\t27' '3\t1' '2\t26' '2\t27' '3\t1' '4\t1'; do
    at 0 "byte $i" --at $i
    is "$(cut -f 2- "$T/out")" "$(printf "$place")" "is written at its line and column"
    i=$((i + 1))
done
put t '{{ n + 1 }}'
put c '{"n": 123456789012345678901234567890}'
render 0 "integers of any size"
is "$(cat "$T/out")" 123456789012345678901234567891 "are exact"
for bad in '{"n": 1, "n": 2}' '[1]' '{"n": 1' "$(printf '\357\273\277{}')" \
    "$(python3 -c 'print("[" * 65 + "]" * 65)')"; do
    put c "$bad"
    render 3 "context $(printf %.20s "$bad")"
    one_line "one line"
    says "$T/c: " "names the file"
done
put c "$(printf '\357\273\277{}')"
render 3 "a context behind a byte order mark"
says "starts with a byte order mark" "is told so"
put c '{}'
put t '{% if %}'
render 3 "a template that is none"
says "$T/t: line 1" "names file and line"
put t '{{ raise_exception("not today") }}'
render 3 "a template's own refusal"
says "not today" "is told"
put t '{% block a %}{% endblock %}'
render 4 "a construct that is not supported"
says "block" "is named"
runs 3 "no template" "$export" --template "$T/none" --context "$T/c"
runs 3 "no context" "$export" --template "$T/t" --context "$T/none"
done_testing
