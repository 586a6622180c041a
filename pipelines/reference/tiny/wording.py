"""The fixture's cases, each in many wordings.  search.py takes the first whose
logits have no near tie.

Random weights give near ties every dozen positions, and two correct programs
decide one differently; a reference must not depend on that.
"""

from itertools import product

ORDERED = "Begin with the first and name each once."

RULES = (
    "You read charts. The title is above, the axis labels are below and to the "
    "left. Every value that you give must be read from the chart; when a bar ends "
    "between two lines, estimate it and say so. Do not guess what the chart does "
    "not show. If a label cannot be read, write \"unreadable\" in its place. "
    "Numbers use a point as the decimal mark and no separator between thousands: "
    "1250.5, 98000, 0.75. Percentages are written with the sign, temperatures "
    "with their unit, dates as year, month and day: 2026-02-03.\n\n"
    "# Form\n\n"
    "- one object, no list around it\n"
    "- keys in the order in which they are asked for\n"
    "- a missing value is null\n\n"
    "| site | count | share |\n| --- | ---: | ---: |\n"
    "| hill | 12 | 30 % |\n| shore | 28 | 70 % |\n\n"
    "From this table the answer would be {\"site\": \"shore\", \"count\": 28}. "
    "The quick answer is not always the right one; a slow check finds what haste "
    "has missed. First look at the title, then at the legend, then at the bars "
    "from left to right, and compare the heights of the two that seem equal. "
    "When two bars share a height, name the one further to the left. When a bar "
    "has more than one colour, add its parts. When the axis does not begin at "
    "zero, say so in a note. The grey lines help you to read a value: count them "
    "from below and multiply by the step that the labels show. A label that "
    "stands between two bars belongs to the one on its left.\n\n"
    "Please compare the result with the table before you answer: nothing may be "
    "lost and nothing may be added. The sum of all shares is 100 %, the "
    "sum of all counts stands in no row. "
    "Zoë's charts have their legend on the right side, Noël's below the axis.")

# More sentences for the chart's rules: how far they push the image tells where
# the chunk's end falls in it.
FILLER = ["", " Write nothing else.", " Thank you.", " The colours mean nothing.",
          " Stay brief.", " Read twice, answer once.", " Count the bars first.",
          " A grey line is no bar.", " Bars may touch.", " Two bars may share a colour."]


def _case(name, thinking, system, *user, images=()):
    content = [{"type": "image"} for _ in images]
    content += [{"type": "text", "text": text} for text in user]
    return {"name": name, "thinking": thinking, "messages": [
                {"role": "system", "content": [{"type": "text", "text": system}]},
                {"role": "user", "content": content}],
            "images": list(images)}


def variants():
    """name -> an iterable of cases without budget."""
    counts = list(product(range(21, 29), range(11, 19), range(4, 8)))
    return {
        "thinking-arithmetic": (
            _case("thinking-arithmetic", True,
                  "You are a careful assistant. Answer briefly.",
                  f"A box holds {a} red and {b} green balls. {c} are taken out. "
                  "How many remain?")
            for a, b, c in counts),
        "json": (
            # e and the diaeresis apart: the tokenizer's NFC joins them
            _case("json", False, "You answer with JSON only.",
                  f"Zoe\u0308 has {a} apples and {b} pears in {c} baskets. Give "
                  "{\"sum\": ..., \"product\": ...} of the first two.")
            for a, b, c in counts),
        "shapes": (
            _case("shapes", False, "You describe images.", f"{what} {how}",
                  images=["images/shapes.png"])
            for what, how in product(
                ["Which shapes do you see?", "What shapes are there?",
                 "Name all shapes in this image.", "Which shapes are in the picture?",
                 "What do you see?", "Which forms does this image show?",
                 "List the shapes.", "Describe the four shapes."],
                ["", "Name their colours.", "Which colours do they have?",
                 "Say where they are.", "And what colours?", ORDERED,
                 "Answer in one sentence.", "Which is the largest?"])),
        "receipt": (
            _case("receipt", False, "You read documents.", f"{what} {how}",
                  images=["images/receipt.png"])
            for what, how in product(
                ["What is the total?", "What is the total on this receipt?",
                 "Which line is the most expensive?", "How much is the tax?",
                 "How much was paid?", "Which total does the receipt show?",
                 "What does the milk cost?", "Read the receipt."],
                ["", "Answer with one number.", "Name the line.", "Answer briefly.",
                 "Use a point as the decimal mark.", ORDERED,
                 "Then give the tax.", "Do not guess."])),
        "chart": (
            _case("chart", False, RULES + filler, what, images=["images/chart.png"])
            for what, filler in product(
                ["Which site has the highest count? Name it with JSON: "
                 "{\"site\": ..., \"count\": ...}",
                 "Which site has the lowest count? {\"site\": ..., \"count\": ...}",
                 "Which bar is the second? {\"site\": ..., \"count\": ...}",
                 "Name the site with more than 40 visits as {\"site\": ..., \"count\": ...}",
                 "What is the count of the east? {\"site\": ..., \"count\": ...}"],
                FILLER)),
        "photograph": (
            _case("photograph", False, "You look at photographs.", f"{what} {how}",
                  images=["images/photograph.jpg"])
            for what, how in product(
                ["Describe the light.", "At what hour was this taken?",
                 "What stands behind the water?", "Describe the photograph.",
                 "What is the weather?", "Which colours does the water have?",
                 "Is it morning or evening?", "What do you see?"],
                ["", "Explain in two sentences.", "Answer briefly.", ORDERED,
                 "Why?", "Name the hills, the sun and the water.",
                 "Do not guess.", "How far away are the hills?"])),
    }
