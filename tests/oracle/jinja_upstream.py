"""Upstream's own rendering of a template: Jinja2 in the environment that
transformers' apply_chat_template compiles templates in, with a fixed clock.
Recorders and the differential run share it.  Recorded with Python 3.11.7,
jinja2 3.1.6, transformers 5.5.0."""
import datetime
import json
import re
import signal
import sys

import jinja2
from transformers.utils.chat_template_utils import _compile_jinja_template

NOW = datetime.datetime(2026, 2, 3, 4, 5, 6)
VERSIONS = {"jinja2": jinja2.__version__}


class Unstable(Exception):
    """The text holds an address: there is nothing to compare."""


def compile_template(source):
    template = _compile_jinja_template(source)
    template.environment.globals["strftime_now"] = NOW.strftime
    return template


def render(source, context):
    """The row that upstream's result makes: output, or error with its kind."""
    row = {"template": source, "context": context}
    try:
        output = compile_template(source).render(**json.loads(json.dumps(context)))
        if re.search(r" at 0x[0-9a-f]{8,}", output):
            return row | {"error": "unstable"}
        output.encode()
        return row | {"output": output}
    except UnicodeEncodeError:
        return row | {"error": "surrogate"}
    except jinja2.TemplateSyntaxError as e:
        return row | {"error": "syntax", "exception": type(e).__name__, "message": str(e)}
    except jinja2.exceptions.SecurityError as e:
        return row | {"error": "security", "exception": type(e).__name__, "message": str(e)}
    except jinja2.UndefinedError as e:
        return row | {"error": "undefined", "exception": type(e).__name__, "message": str(e)}
    except jinja2.TemplateError as e:
        kind = "raise" if type(e) is jinja2.TemplateError else "runtime"
        return row | {"error": kind, "exception": type(e).__name__, "message": str(e.message)}
    except (RecursionError, MemoryError) as e:
        return row | {"error": "limit", "message": type(e).__name__}
    except Exception as e:  # what Python itself raises
        return row | {"error": "python", "exception": type(e).__name__, "message": str(e)}


def write(rows, out):
    for row in rows:
        out.write(json.dumps(row, ensure_ascii=False) + "\n")


class TooLong(Exception):
    pass


def give_up(*_):
    raise TooLong


def write_random(count, seed, make):
    """A row each for count templates and contexts: make(seed) gives them.  Those
    that take more than two seconds are left out."""
    signal.signal(signal.SIGALRM, give_up)
    for i in range(count):
        source, context = make(seed * 1000003 + i)
        signal.alarm(2)
        row = render(source, context)
        signal.alarm(0)
        if row.get("exception") != "TooLong":
            write([row], sys.stdout)
            sys.stdout.flush()
