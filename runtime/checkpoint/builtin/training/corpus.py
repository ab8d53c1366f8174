"""The corpus of the built-in models: a template grammar whose answers can be checked.

    python3 corpus.py [SEED] [N]      prints N sample documents

A document is a list of (text, learned) pieces: a model is trained to produce the learned ones. Every document comes from one
`random.Random`, so a seed and an index name it. Sums of pairs in `held_out` never appear in training.
"""
import json
import random
import sys

NAMES = """Ann Bob Cara Dan Eva Finn Gus Hana Ivo Jill Kim Leo Mia Ned Ola Pia Quinn Rosa Sam Tess Uma Vic Wren Yara Zoe
Adam Bea Carl Dora Emil Fay Gwen Hugo Ines Jack Kira Liam Mona Nils Otto""".split()
COLOURS = "red blue green yellow white black brown pink grey orange purple golden".split()
THINGS = """ball cup hat book kite drum lamp coat boat bell key box map ring spoon chair clock flute basket bottle candle
blanket hammer ladder mirror needle pencil ribbon saddle shovel teapot wagon whistle button brush""".split()
ANIMALS = "dog cat fox owl bear hen duck goat horse mouse rabbit sheep pig frog crow bee otter badger heron mole".split()
PLACES = """garden river forest market kitchen school harbour meadow barn library mill tower bridge cellar orchard island
village cave workshop station""".split()
CITIES = "Oslo Rome Paris Cairo Lima Delhi Quito Tokyo Dublin Prague Vienna Athens Lisbon Madrid Berlin Accra".split()
FOODS = "bread soup apples honey cheese berries plums nuts porridge pears carrots jam".split()
WEATHER = "sunny rainy windy cloudy snowy foggy".split()
FEELINGS = "happy proud tired hungry brave curious sleepy glad calm shy".split()

ABOUT = {
    "What is Ashlar?": "Ashlar is a runtime that serves language models on Kubernetes. It plans before it loads and explains every choice.",
    "Who are you?": "I am the demo model of Ashlar. I am small, but I know sums, short stories and simple facts.",
    "What is a KV cache?": "The KV cache holds the keys and values of earlier tokens, so that each new token is computed only once.",
    "What is a block?": "A block is a fixed number of tokens in the KV cache. A sequence holds a list of blocks.",
    "What is a backend?": "A backend is the kernel that computes attention for one group of layers.",
    "What is a sliding window?": "A sliding window layer looks only at the last few tokens, so its old blocks can be freed.",
    "What is prefix caching?": "Prefix caching keeps the blocks of an old prompt, so that a new prompt with the same start is faster.",
    "What can you do?": "I can add numbers, look things up, tell a short story, answer in JSON and call a tool.",
    "What is an ashlar?": "An ashlar is a stone that is cut to an exact shape before it is laid.",
}
GREETINGS = {"Hello!": "Hello! How can I help you?", "Hi!": "Hi! What would you like to know?", "Good morning!": "Good morning! How can I help you?",
             "Thank you!": "You are welcome!", "Thanks!": "You are welcome!", "Goodbye!": "Goodbye! See you soon.", "How are you?": "I am fine, thank you."}

TOOLS = {
    "get_weather": {"description": "Current weather of a city", "parameters": {"city": "string"}},
    "add_numbers": {"description": "Add two numbers", "parameters": {"a": "integer", "b": "integer"}},
    "find_owner": {"description": "Find who owns a thing", "parameters": {"thing": "string"}},
}


def tool_schema(name):
    tool = TOOLS[name]
    properties = {key: {"type": kind} for key, kind in tool["parameters"].items()}
    return {"type": "function", "function": {"name": name, "description": tool["description"],
            "parameters": {"type": "object", "properties": properties, "required": list(properties)}}}


def held_out(a, b):
    """One pair of summands in ten is kept for the evaluation."""
    return (a * 131 + b * 31 + a * b) % 10 == 3


def turn(role, text, learned=False):
    head = f"<|im_start|>{role}\n"
    return [(head, False), (text + "<|im_end|>", learned), ("\n", False)]


def chat(*turns, system=None):
    pieces = turn("system", system) if system else []
    for question, answer in turns:
        pieces += turn("user", question) + turn("assistant", answer, True)
    return pieces


def a(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def pair(rng, limit=100):
    while True:
        x, y = rng.randrange(limit), rng.randrange(limit)
        if not held_out(x, y):
            return x, y


def sum_question(rng, x, y):
    return rng.choice(["{}+{}", "What is {} plus {}?", "What is {}+{}?", "Add {} and {}.", "{} + {} =", "How much is {} plus {}?"]).format(x, y)


def sum_turn(rng, limit=100):
    x, y = pair(rng, limit)
    return sum_question(rng, x, y), str(x + y)


def facts(rng, n):
    """n sentences about owners, and the fact table."""
    people = rng.sample(NAMES, n)
    things = rng.sample(THINGS, n)
    table = {p: (rng.choice(COLOURS), t) for p, t in zip(people, things)}
    return " ".join(f"{p} has {a(c)} {t}." for p, (c, t) in table.items()), table


def lookup_questions(rng, table, k):
    people = rng.sample(list(table), min(k, len(table)))
    turns = []
    for p in people:
        colour, thing = table[p]
        turns.append(rng.choice([
            (f"What does {p} have?", f"{p} has {a(colour)} {thing}."),
            (f"Who has the {thing}?", f"{p} has the {thing}."),
            (f"What colour is the {thing}?", f"The {thing} is {colour}."),
        ]))
    return turns


def lookup(rng):
    text, table = facts(rng, rng.randint(2, 8))
    turns = lookup_questions(rng, table, rng.randint(1, 3))
    first = (text + " " + turns[0][0], turns[0][1])
    return chat(first, *turns[1:])


def story_text(rng, name=None, animal=None):
    name, animal = name or rng.choice(NAMES), animal or rng.choice(ANIMALS)
    place, other = rng.sample(PLACES, 2)
    colour, thing, food, mood, friend = (rng.choice(COLOURS), rng.choice(THINGS), rng.choice(FOODS), rng.choice(FEELINGS),
                                         rng.choice([n for n in NAMES if n != name]))
    start = rng.choice([f"Once upon a time there was {a(animal)} named {name}.", f"{name} was {a(animal)} who lived near the {place}.",
                        f"In the {place} lived {a(animal)} named {name}."])
    middle = rng.choice([
        [f"One day {name} found {a(colour)} {thing} in the {other}.", f"{name} did not know whose {thing} it was.",
         f"So {name} went to {friend} and asked.", f"\"That is my {thing}!\" said {friend}.", f"{friend} gave {name} some {food} to say thank you."],
        [f"One day {name} lost the {colour} {thing} in the {other}.", f"{name} looked everywhere, but the {thing} was gone.",
         f"Then {friend} came with a lamp.", f"Together they found the {thing} under a tree.", f"They ate {food} and laughed."],
        [f"Every morning {name} walked to the {other} to look for {food}.", f"One day it was {rng.choice(WEATHER)} and the path was gone.",
         f"{friend} heard {name} call and came to help.", f"They walked home with the {colour} {thing} between them."],
    ])
    end = rng.choice([f"That night {name} was very {mood}.", f"From then on {name} and {friend} were friends.", f"{name} went home and felt {mood}."])
    return " ".join([start, *middle, end])


def story(rng):
    name, animal = rng.choice(NAMES), rng.choice(ANIMALS)
    kind = rng.randrange(3)
    if kind == 0:
        return [(story_text(rng), True)]
    if kind == 1:
        return chat((rng.choice(["Tell me a story.", "Tell me a short story.", "Please tell me a story."]), story_text(rng)))
    return chat((f"Tell me a story about {a(animal)} named {name}.", story_text(rng, name, animal)))


def about(rng):
    turns = [rng.choice(list(ABOUT.items()))]
    if rng.random() < 0.4:
        turns.insert(0, rng.choice(list(GREETINGS.items())))
    return chat(*turns)


def json_answer(rng):
    kind = rng.randrange(3)
    if kind == 0:
        name, age, city = rng.choice(NAMES), rng.randint(2, 99), rng.choice(CITIES)
        question = f"{name} is {age} years old and lives in {city}. Answer in JSON with name, age and city."
        answer = {"name": name, "age": age, "city": city}
    elif kind == 1:
        name, colour, thing = rng.choice(NAMES), rng.choice(COLOURS), rng.choice(THINGS)
        question = f"{name} has {a(colour)} {thing}. Answer in JSON with owner, thing and colour."
        answer = {"owner": name, "thing": thing, "colour": colour}
    else:
        x, y = pair(rng)
        question = f"What is {x} plus {y}? Answer in JSON with sum."
        answer = {"sum": x + y}
    return chat((question, json.dumps(answer)))


def thinking(rng):
    """The opening tag comes from the prompt, so it is not learned: the model thinks only when asked to."""
    x, y = pair(rng)
    z = rng.randrange(10)
    question, thought, answer = rng.choice([
        (sum_question(rng, x, y), f"{x} plus {y} is {x + y}.", str(x + y)),
        (f"What is {x} plus {y} plus {z}?", f"{x} plus {y} is {x + y}. {x + y} plus {z} is {x + y + z}.", str(x + y + z)),
    ])
    return turn("user", question) + [("<|im_start|>assistant\n<think>\n", False), (f"{thought}\n</think>\n\n{answer}<|im_end|>", True), ("\n", False)]


def tool_system(names):
    lines = "\n".join(json.dumps(tool_schema(name)) for name in names)
    return f"You may call these tools.\n<tools>\n{lines}\n</tools>"


def tool_call(rng):
    names = rng.sample(list(TOOLS), rng.randint(1, len(TOOLS)))
    name = rng.choice(names)
    x, y = pair(rng)
    if name == "get_weather":
        city, weather, degrees = rng.choice(CITIES), rng.choice(WEATHER), rng.randint(-9, 39)
        question, arguments = f"What is the weather in {city}?", {"city": city}
        response, answer = json.dumps({"weather": weather, "degrees": degrees}), f"It is {weather} in {city}, {degrees} degrees."
    elif name == "add_numbers":
        question, arguments = sum_question(rng, x, y), {"a": x, "b": y}
        response, answer = json.dumps({"sum": x + y}), str(x + y)
    else:
        thing, owner = rng.choice(THINGS), rng.choice(NAMES)
        question, arguments = f"Who has the {thing}?", {"thing": thing}
        response, answer = json.dumps({"owner": owner}), f"{owner} has the {thing}."
    call = "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"
    pieces = turn("system", tool_system(names)) + turn("user", question) + turn("assistant", call, True)
    if rng.random() < 0.7:
        pieces += turn("user", f"<tool_response>\n{response}\n</tool_response>") + turn("assistant", answer, True)
    return pieces


def small_talk(rng):
    turns = [rng.choice(list(GREETINGS.items())), sum_turn(rng)]
    rng.shuffle(turns)
    return chat(*turns)


def sums(rng):
    return chat(*[sum_turn(rng) for _ in range(rng.randint(1, 5))])


def count(rng):
    start, n = rng.randrange(90), rng.randint(3, 10)
    return chat((f"Count from {start} to {start + n}.", ", ".join(str(start + i) for i in range(n + 1)) + "."))


def repeat(rng):
    words = rng.sample(THINGS + ANIMALS + FOODS + COLOURS, rng.randint(2, 10))
    return chat((rng.choice(["Repeat: ", "Say this again: "]) + " ".join(words), " ".join(words)))


KINDS = [(sums, 24), (lookup, 32), (story, 16), (json_answer, 9), (tool_call, 9), (thinking, 7), (about, 4), (small_talk, 3), (count, 2), (repeat, 5)]


def document(rng):
    kinds, weights = zip(*KINDS)
    return rng.choices(kinds, weights)[0](rng)


if __name__ == "__main__":
    rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 10):
        print("".join(text for text, _ in document(rng)), "\n---")
