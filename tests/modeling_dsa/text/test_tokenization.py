"""modeling_dsa.text.tokenization: splitting, normalisation, offsets, saved files, coverage of real data."""

import csv
import json
import re
import time
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from modeling_dsa.text.special_tokens import SPECIAL_TOKENS
from modeling_dsa.text.tokenization import WordTokenizer, build_tokenizer, count_words

DATA = Path(__file__).parents[4] / "shared" / "data"

SPLITTING = {
    # Contractions and clitics
    "I don't, can't and won't.": "I do n't , ca n't and wo n't .",
    "DON'T Isn't": "DO N'T Is n't",
    "cannot Cannot cannots": "can not Can not cannots",
    "gonna gotta wanna lemme gimme": "gon na got ta wan na lem me gim me",
    "dog's we're I've they'll he'd I'm IT'S": "dog 's we 're I 've they 'll he 'd I 'm IT 'S",
    "shouldn't've he'd've": "should n't 've he 'd 've",
    "the dogs' house": "the dogs ' house",
    "It 's n't split twice": "It 's n't split twice",
    "o'clock O'Brien's rock'n'roll": "o'clock O'Brien 's rock'n'roll",
    "the '70s, 5'10 tall": "the ' 70s , 5 ' 10 tall",
    # Punctuation
    "Stop! Really?! (yes); no: a, b.": "Stop ! Really ? ! ( yes ) ; no : a , b .",
    "wait... what.... ..": "wait ... what ... . . .",
    "a--b --- c": "a -- b -- - c",
    "end.Start": "end . Start",
    "50% #tag @name a_b": "50 % # tag @ name a _ b",
    "and/or black&white": "and / or black & white",
    # Numbers and currency
    "1,000 1,234,567.89 3.5 10:30 1/2 9/11": "1,000 1,234,567.89 3.5 10:30 1/2 9/11",
    "1,2,3 1,0000": "1 , 2 , 3 1 , 0000",
    "$3.50 £20 €5 4:06pm 21st 1990s 3.": "$ 3.50 £ 20 € 5 4:06 pm 21st 1990s 3 .",
    # Hyphens
    "well-known 12-year-old": "well - known 12 - year - old",
    "T-shirt t-shirts x-ray F-16 port-a-potty": "T-shirt t-shirts x-ray F-16 port - a - potty",
    # Abbreviations
    "the U.S. at 5 p.m. e.g. here": "the U.S. at 5 p.m. e.g. here",
    "Mr. Smith vs. Dr. Jones Inc.": "Mr. Smith vs. Dr. Jones Inc.",
    "J. K. Rowling and I. Then z.": "J. K. Rowling and I . Then z .",
    "No. 5 said no.": "No. 5 said no .",
    "AT&T R&B Q&A": "AT&T R&B Q&A",
    # Addresses
    "a.b@c.co.uk, http://x.org/y?z=1. www.foo.de)": "a.b@c.co.uk , http://x.org/y?z=1 . www.foo.de )",
    "Amazon.com. twitter.com/a_b!": "Amazon.com . twitter.com/a_b !",
    # Quotes
    '"Hi," he said ("no").': "`` Hi , '' he said ( `` no '' ) .",
    "'He said \"no.\"' \"'Yes'\"": "' He said `` no . '' ' `` ' Yes ' ''",
    'a " b "': "a '' b ''",
    "“Hi” ‘so’ it’s don’t «x» 5″ 3′": "`` Hi '' ' so ' it 's do n't `` x '' 5 '' 3 '",
    # Penn Treebank escapes
    "`` a '' ` b ' -LRB- c -rrb- -LSB- -RSB- -LCB- -RCB-": "`` a '' ` b ' ( c ) [ ] { }",
    "comedy\\/drama \\*\\*": "comedy / drama * *",
    # Dashes, ellipsis, spaces, characters without width, composition
    "a—b a―b a – b 3–4 ab‐cd‑ef −5": "a -- b a -- b a -- b 3 - 4 ab - cd - ef - 5",
    "so…. .…": "so ... . . ...",
    "a\u00a0b\u2009c\u3000d\t\n\u2028e": "a b c d e",
    "so\u00adft ze\u200bro\ufeff ❤\ufe0f \u200d\x00\x7f": "soft zero ❤",
    "cafe\u0301 caf\u00e9 A\u030a": "café café Å",
    "日本 Привет 🙏🎃": "日本 Привет 🙏 🎃",
}


def words(tokenizer: WordTokenizer, text: str) -> list[str]:
    tokens: list[str] = tokenizer.tokenize(text)
    return tokens


def offsets(tokenizer: WordTokenizer, text: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    return found


@pytest.mark.parametrize(("text", "expected"), SPLITTING.items())
def test_words_of_text(text: str, expected: str) -> None:
    cased, lower = expected.split(), expected.lower().split()
    assert words(build_tokenizer(dict.fromkeys(cased), lowercase=False), text) == cased
    assert words(build_tokenizer(dict.fromkeys(lower), lowercase=True), text) == lower
    assert count_words([text], lowercase=False) == Counter(cased)


@pytest.mark.parametrize("text", SPLITTING)
def test_splitting_again_changes_nothing(text: str) -> None:
    tokenizer = build_tokenizer(count_words([text], lowercase=False), lowercase=False)
    once = words(tokenizer, text)
    assert words(tokenizer, " ".join(once)) == once


@pytest.mark.parametrize("text", ["", " ", "\n\t \u00a0", "\u200b\ufeff"])
def test_text_without_words(text: str) -> None:
    tokenizer = build_tokenizer(["a"], lowercase=True)
    assert tokenizer(text)["input_ids"] == []
    assert tokenizer(text, "a")["input_ids"] == [2, 3]
    assert count_words([text], lowercase=True) == Counter()


def test_ids_follow_the_given_order() -> None:
    tokenizer = build_tokenizer(iter(["dog", "cat", "Dog"]), lowercase=False)
    assert tokenizer.get_vocab() == {"[PAD]": 0, "[UNK]": 1, "[SEP]": 2, "dog": 3, "cat": 4, "Dog": 5}
    assert tokenizer("Dog cat bird DOG")["input_ids"] == [5, 4, 1, 1]
    assert build_tokenizer(["dog"], lowercase=True)("DOG dog")["input_ids"] == [3, 3]
    assert (tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.sep_token_id) == (0, 1, 2)
    assert tuple(tokenizer.convert_ids_to_tokens([0, 1, 2])) == SPECIAL_TOKENS


def test_pairs_and_padding() -> None:
    tokenizer = build_tokenizer(["a", "dog", "runs"], lowercase=True)
    pair = tokenizer("A dog", "runs")
    assert list(pair) == ["input_ids", "token_type_ids", "attention_mask"]
    assert dict(pair) == {
        "input_ids": [3, 4, 2, 5],
        "token_type_ids": [0, 0, 0, 1],
        "attention_mask": [1, 1, 1, 1],
    }
    batch = tokenizer(["A dog", "a"], ["runs", "runs"], padding=True)
    assert batch["input_ids"] == [[3, 4, 2, 5], [3, 2, 5, 0]]
    assert batch["attention_mask"] == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert batch["token_type_ids"] == [[0, 0, 0, 1], [0, 0, 1, 0]]
    assert tokenizer("a [SEP] runs")["input_ids"] == [3, 2, 5]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (["a", ""], "position 1 is empty"),
        (["a", "b", "a"], "'a' comes twice, at positions 0 and 2"),
        (["[SEP]"], r"'\[SEP\]' at position 0 is a special token"),
        ("abc", "words is one string"),
    ],
)
def test_bad_vocabulary_is_refused(bad: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_tokenizer(bad, lowercase=True)


def test_one_string_as_texts_is_refused() -> None:
    with pytest.raises(ValueError, match="texts is one string"):
        count_words("abc", lowercase=True)


def test_saved_tokenizer_loads_without_this_package(tmp_path: Path) -> None:
    tokenizer = build_tokenizer(count_words(SPLITTING, lowercase=True), lowercase=True)
    tokenizer.save_pretrained(tmp_path / "saved")
    # transformers 4 knows only this name.
    config = json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
    loaded = AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert type(loaded).__module__.startswith("transformers.")
    texts = list(SPLITTING)
    expected = tokenizer(texts, texts[::-1], padding=True, return_offsets_mapping=True)
    assert dict(loaded(texts, texts[::-1], padding=True, return_offsets_mapping=True)) == dict(expected)
    assert expected.keys() == {"input_ids", "token_type_ids", "attention_mask", "offset_mapping"}


def test_saving_is_deterministic_and_repeatable(tmp_path: Path) -> None:
    for name in ("one", "two"):
        build_tokenizer(count_words(SPLITTING, lowercase=True), lowercase=True).save_pretrained(tmp_path / name)
    loaded = WordTokenizer.from_pretrained(tmp_path / "one")
    loaded.save_pretrained(tmp_path / "three")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert (tmp_path / "one" / "tokenizer.json").read_bytes() == (tmp_path / "three" / "tokenizer.json").read_bytes()
    config = json.loads((tmp_path / "three" / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"


def test_counts_of_any_iterable() -> None:
    expected = Counter({"dog": 3, "runs": 1})
    assert count_words({"Dog dog": 7, "dog runs": 8}, lowercase=True) == expected
    assert count_words(iter(["dog", "dog", "dog runs"]), lowercase=True) == expected


@pytest.mark.parametrize("lowercase", [True, False])
def test_counts_are_those_of_the_tokenizer_built_from_them(lowercase: bool) -> None:
    texts = [*SPLITTING, *list(SPLITTING)[:5], "a [SEP] b [PAD] “[UNK]”", "No. [SEP]5"]
    counts = count_words(iter(texts), lowercase=lowercase)
    tokenizer = build_tokenizer(counts, lowercase=lowercase)
    encoded = Counter(token for text in texts for token in words(tokenizer, text) if token not in SPECIAL_TOKENS)
    assert counts == encoded
    assert tokenizer.unk_token_id not in {i for text in SPLITTING for i in tokenizer(text)["input_ids"]}
    assert list(counts.items()) == sorted(counts.items(), key=lambda item: (-item[1], item[0]))


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("“It’s” so…", ["“", "It", "’s", "”", "so", "…"]),
        ('say "hi"\'', ["say", '"', "hi", '"', "'"]),
        ("'\" .… ….", ["'", '"', ".", "…", "…", "."]),
        ("uneaten—and – gone", ["uneaten", "—", "and", "–", "gone"]),
        ("\u200bso\u00adft\u200b İSTANBUL ǅ", ["so\u00adft", "İSTANBUL", "ǅ"]),
        ("don’t cannot", ["do", "n’t", "can", "not"]),
        # Several raw characters that become one: the documented limits.
        ("a -LRB- b", ["a", "-", "b"]),
        ("cafe\u0301 x", ["cafe", "x"]),
    ],
)
@pytest.mark.parametrize("lowercase", [True, False])
def test_offsets_are_pieces_of_the_raw_text(text: str, pieces: list[str], lowercase: bool) -> None:
    assert [text[start:end] for start, end in offsets(build_tokenizer([], lowercase=lowercase), text)] == pieces


@cache
def tokenizer_without_words(lowercase: bool) -> WordTokenizer:
    return build_tokenizer([], lowercase=lowercase)


CHARACTERS = (
    "aAİßéx1,.:;/\\*&-–—―…'’‘\"“”``«»″()[]@_%$ \t\n\u00a0\u200b\u00ad\ufe0f\ufeff"
    "\u0301\u0345\u0334🙏👍🏽日각\u1100\u1161\u11a8"
)
FRAGMENTS = ["n't", "'s", "can", "not", "www.", "http://", ".com", "Mr.", "U.S.", "...", "--", "t-shirt", "No. 1"]
TRICKY = st.lists(st.sampled_from([*CHARACTERS, *FRAGMENTS]), max_size=40).map("".join)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.mark.parametrize("lowercase", [True, False])
@settings(max_examples=400)
@given(text=TRICKY | ANY_TEXT)
@example(text="\"'\"'…...—--'“")
@example(text="t-shirtİ")  # lower-cased, one letter is two characters
@example(text="a@b.coİ")
def test_offsets_cover_every_visible_character_once(lowercase: bool, text: str) -> None:
    spans = offsets(tokenizer_without_words(lowercase), text)
    end_before = 0
    covered: set[int] = set()
    for start, end in spans:
        assert end_before <= start < end <= len(text)
        covered.update(range(start, end))
        end_before = end
    for position, character in enumerate(text):
        if position in covered:
            continue
        category = unicodedata.category(character)
        escape = character == "\\" and re.match(r"\\[^\w\s.,]*[/*]", text[position:])
        # Marks, and the later letters of a Hangul syllable, join the character before them in NFC.
        joined = category.startswith("M") or "\u1160" <= character <= "\u11ff"
        assert character.isspace() or category in ("Cc", "Cf") or joined or escape, (position, character)


@pytest.mark.parametrize("lowercase", [True, False])
@settings(max_examples=60)
@given(texts=st.lists(TRICKY | ANY_TEXT, max_size=4))
def test_no_unknown_word_in_the_texts_of_the_vocabulary(lowercase: bool, texts: list[str]) -> None:
    counts = count_words(texts, lowercase=lowercase)
    tokenizer = build_tokenizer(counts, lowercase=lowercase)
    assert Counter(token for text in texts for token in words(tokenizer, text)) == counts


@pytest.mark.parametrize(
    "text",
    [
        "dog " * 100_000,
        *(unit * 50_000 for unit in ("a", "a.", "a@", "x-", "a'", "n't", "1,", "www.", '"', ". ", "a&")),
        "a" * 1_000_000 + "n't",
        "a. " + " " * 200_000 + "b",
    ],
    ids=lambda text: repr(text[:4]),
)
def test_time_is_linear(text: str) -> None:
    tokenizer = build_tokenizer(["dog"], lowercase=True)
    start = time.perf_counter()
    ids = tokenizer(text)["input_ids"]
    # Half a second at most when linear; hundreds of times more when quadratic.
    assert time.perf_counter() - start < 10
    if text.startswith("dog"):
        assert ids == [3] * 100_000


@cache
def open_tokenizer(lowercase: bool) -> WordTokenizer:
    return build_tokenizer(["man", "un", "fünf", "愛", "🎃"], lowercase=lowercase, pieces=["##ing", "do"])


LATIN = st.text(
    st.characters(max_codepoint=0x24F)
    | st.sampled_from("ǅɐʻʼᵫẞẵỳₐⅷⱠꜲꟃﬁＡ\u0301\u0345\u1ab0\u1dc4\u20d7\ufe20–—“…€½²™→\u200b"),
    max_size=60,
)


@pytest.mark.parametrize("lowercase", [True, False])
@given(text=LATIN)
@example(text="https://www.x.org/?q=##ing#ing%20<>" + "ß" * 300)
@example(text="aa" * 70 + "n't")
def test_an_open_vocabulary_knows_all_text_in_latin_script(lowercase: bool, text: str) -> None:
    encoded = open_tokenizer(lowercase)(text, return_offsets_mapping=True)
    assert open_tokenizer(lowercase).unk_token_id not in encoded["input_ids"]
    end_before = 0
    for start, end in encoded["offset_mapping"]:
        assert end_before <= end <= len(text)
        assert start < end
        end_before = end


@pytest.mark.parametrize(
    ("text", "tokens"),
    {
        "Man doing un-man": "man do ##ing un - man",
        "fünf unman": "fünf un ##m ##a ##n",
        "愛日 🎃🙏": "愛 [UNK] 🎃 [UNK]",
        "man愛man": "man 愛 man",
        "##ing #ing": "# # i ##n ##g # i ##n ##g",
        "don't doing.": "do n ##' ##t do ##ing .",
    }.items(),
)
def test_pieces_of_text(text: str, tokens: str) -> None:
    assert words(open_tokenizer(True), text) == tokens.split()


def test_a_long_word_is_cut_into_pieces() -> None:
    ids = open_tokenizer(True)("ing" * 4000)["input_ids"]
    assert open_tokenizer(True).unk_token_id not in ids
    assert 4000 <= len(ids) <= 4800  # a few more than pieces, because of the cuts


def test_an_open_vocabulary_has_its_ids_in_order_and_is_saved(tmp_path: Path) -> None:
    tokenizer = open_tokenizer(True)
    assert tokenizer.convert_ids_to_tokens(list(range(3, 10))) == ["man", "un", "fünf", "愛", "🎃", "##ing", "do"]
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert type(loaded).__module__.startswith("transformers.")
    texts = [*SPLITTING, "x" * 200]
    expected = tokenizer(texts, texts[::-1], padding=True, return_offsets_mapping=True)
    assert dict(loaded(texts, texts[::-1], padding=True, return_offsets_mapping=True)) == dict(expected)
    assert loaded.decode(loaded("doing un-man")["input_ids"]) == "doing un - man"


@pytest.mark.parametrize(
    ("known", "pieces", "message"),
    [
        (["##a"], ["##b"], "'##a' at position 0 is spelled like a piece"),
        (["a"], ["##"], "piece at position 0 is empty"),
        (["a"], ["b", "a"], "piece 'a' comes twice, at positions 0 and 2"),
    ],
)
def test_bad_pieces_are_refused(known: list[str], pieces: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_tokenizer(known, lowercase=True, pieces=pieces)


def snli_texts() -> list[str]:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow reads the SNLI part")
    table = parquet.read_table(DATA / "snli" / "train_57k.parquet", columns=["sentence1", "sentence2"])
    texts: list[str] = table["sentence1"].to_pylist() + table["sentence2"].to_pylist()
    for line in (DATA / "snli" / "snli_1.0_dev.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        texts += [row["sentence1"], row["sentence2"]]
    return texts


def sst_texts() -> list[str]:
    files = [(DATA / "sst" / f"{name}.txt").read_text(encoding="utf-8") for name in ("train", "dev", "test")]
    return [" ".join(re.findall(r"\(\d ([^()]+)\)", tree)) for file in files for tree in file.splitlines()]


def fnc_texts(file: str, column: str) -> list[str]:
    csv.field_size_limit(10_000_000)
    texts: set[str] = set()
    for split in ("train", "competition_test"):
        with (DATA / "fnc1" / f"{split}_{file}.csv").open(encoding="utf-8", newline="") as rows:
            texts.update(row[column] for row in csv.DictReader(rows))
    return sorted(texts)


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="needs the project's shared data")
@pytest.mark.parametrize(
    ("name", "least"), [("snli", 0.998), ("sst", 0.994), ("fnc headlines", 0.983), ("fnc bodies", 0.985)]
)
def test_glove_has_the_words_of_real_data(name: str, least: float) -> None:
    readers: dict[str, Callable[[], list[str]]] = {
        "snli": snli_texts,
        "sst": sst_texts,
        "fnc headlines": partial(fnc_texts, "stances", "Headline"),
        "fnc bodies": partial(fnc_texts, "bodies", "articleBody"),
    }
    texts = readers[name]()
    with zipfile.ZipFile(DATA / "glove" / "glove.6B.55k.zip") as archive:
        lines = archive.read("glove.6B.100d.txt").decode("utf-8").splitlines()
    glove = {line.split(" ", 1)[0] for line in lines}
    start = time.process_time()
    counts = count_words(texts, lowercase=True)
    assert time.process_time() - start < 30  # 3 s on a quiet core
    coverage = sum(count for word, count in counts.items() if word in glove) / counts.total()
    assert coverage >= least
