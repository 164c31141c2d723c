"""Makes bpe_vocab.json, bpe_merges.txt and bpe.txt: a small byte-level BPE, and what GPT-2's algorithm makes of texts.

python make_bpe.py (needs the `regex` module). The algorithm is the published one, written plainly. Lines of bpe.txt:
the text's bytes in hex <tab> token numbers."""
import collections
import json
import random

import regex

PATTERN = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
CORPUS = """A load line is the mark on the side of a ship that shows how deep it may lie in the water. The ship that is
loaded above the line isn't safe; it's in danger, and they're all in danger with it. We'll draw the line first, then
load: the water doesn't care what we'd hoped. In 1876 the mark became law. Größe, Höhe, naïve café, Straße; наука и
техника; 日本語の文字列; memory memory memory, training training, numbers 12 123 1234 12345, don't don't can't.
    for (int i = 0; i < count; i++)
        total += values[i];
""" * 3
TEXTS = ["", " ", "  ", "a", "The load line of the ship", "the ship's line isn't loaded", "they're we'll we've I'm he'd it's",
         "THEY'RE 'S 'll 'x", "!'s ''s 's", "  two  blanks   three ", "tab\tand\nnewline\n\n  indented\r\n", "\n\n\nx", "x\n\n\n",
         "1234567890 12 3x4 ½ Ⅷ 一", "naïve café Größe Straße", "наука и техника", "日本語の文字列です", "😀😀 emoji 👩‍👩‍👧", "\u00a0nbsp\u3000wide\u2028line",
         "a\u0301 combining", "total += values[i];    for (int i = 0;", "mmmmmmmmmmmmmmmmmmmmmmmm", "memorymemorytrainingtraining" * 4,
         "x" * 200, "the" * 100 + "line", "\x00\x01\x7f", "<|endoftext|>", "don't can't won't", "\u1e9eẞ\u00df", "\x85x\x1cx\x0bx", "a" * 49 + " b"]


def byte_names():
    visible = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    names, extra = {}, 0
    for b in range(256):
        if b in visible:
            names[b] = chr(b)
        else:
            names[b] = chr(256 + extra)
            extra += 1
    return names


NAMES = byte_names()


def named(data):
    return tuple(NAMES[b] for b in data)


def merged(word, pair):
    out, i = [], 0
    while i < len(word):
        if i + 1 < len(word) and (word[i], word[i + 1]) == pair:
            out.append(word[i] + word[i + 1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return tuple(out)


def train(count):
    words = collections.Counter(named(piece.encode()) for piece in PATTERN.findall(CORPUS))
    merges = []
    while len(merges) < count:
        pairs = collections.Counter()
        for word, times in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += times
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        words = collections.Counter({merged(word, best): times for word, times in words.items()})
    return merges


def encode(text, ranks, vocabulary):
    numbers = []
    for piece in PATTERN.findall(text):
        word = named(piece.encode())
        while len(word) > 1:
            best = min(zip(word, word[1:]), key=lambda pair: ranks.get(pair, float("inf")))
            if best not in ranks:
                break
            word = merged(word, best)
        numbers += [vocabulary[symbol] for symbol in word]
    return numbers


merges = train(400)
vocabulary = {}
for symbol in list(NAMES.values()) + ["".join(pair) for pair in merges] + ["<|endoftext|>"]:
    vocabulary.setdefault(symbol, len(vocabulary))
with open("bpe_vocab.json", "w", encoding="utf-8") as out:
    json.dump(vocabulary, out, separators=(",", ":"))
with open("bpe_merges.txt", "w", encoding="utf-8") as out:
    out.write("#version: 0.2\n" + "".join("%s %s\n" % pair for pair in merges))
ranks = {pair: i for i, pair in enumerate(merges)}
mix = random.Random(4)
pieces = ["the", " ", "  ", "\n", "'s", "'", "ship", " line", "1", "23", "é", "日", "!", ".", "\u00a0", "X", " load", "ing", "ß", "\t"]
for _ in range(120):
    TEXTS.append("".join(mix.choice(pieces) for _ in range(mix.randint(1, 14))))
with open("bpe.txt", "w") as out:
    for text in TEXTS:
        out.write("%s\t%s\n" % (text.encode().hex(), " ".join(str(n) for n in encode(text, ranks, vocabulary))))
