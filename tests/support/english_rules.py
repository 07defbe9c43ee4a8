"""The table of wordings that slow a reader down, and what to write instead: `make lint` looks for them (english.py).

Each row has a sentence that the rule finds and one that it passes; tests/unit/house/test_english.py tries both. A
pattern is a regular expression over one sentence, in which white space is one space and inline code is the word CODE.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """One wording. `pattern` is sought without regard to case unless it has an upper-case letter."""

    name: str
    pattern: str
    instead: str
    finds: str
    passes: str


_BE = r"(?:is|are|was|were|be|been|being)"

RULES = (
    # A clause where the reader expects a noun
    Rule(
        "who-clause",
        r"^Who (?!.*\?$).{30,}|\b(?:by|to|for|from|of|with|than|asks|lets|tells) who\b",
        'a noun: "a caller that", "anyone who"',
        "Who sends a step again gets the first answer.",
        "A caller that sends a step again gets the first answer.",
    ),
    Rule(
        "whoever",
        r"\bwhoever\b",
        '"anyone who", "any"',
        "It accepts whoever connects.",
        "It accepts any client.",
    ),
    Rule(
        "what-clause",
        r"^What (?!happens|.*\?$)\S+ .*\b(?:is|are|was|were|has|have|stays?|goes|ends?|comes|gets|counts?) .*\.$",
        "the thing itself as the subject",
        "What it had answered is there again.",
        "Its earlier answers are still available.",
    ),
    Rule(
        "of-what",
        r"\b(?:of|by|from|into|without|among|than|beside|between) what\b",
        "the noun: what is it called?",
        "A list of what is missing.",
        "A list of the missing tasks.",
    ),
    Rule(
        "what-there-is",
        r"\bwhat there (?:is|was|are)\b",
        '"what is available"',
        "It says what there is.",
        "It says what is available.",
    ),
    Rule(
        "whose-clause", r"^Whose (?!.*\?$)", "a noun", "Whose lease ends is lost.", "A task whose lease ends is lost."
    ),
    # The subject or the verb is missing
    Rule(
        "no-subject",
        r"^(?:Is|Are|Was|Were|Has|Had) (?!.*\?$)",
        "the subject first",
        "Is closed once the step ends.",
        "The queue is closed once the step ends.",
    ),
    Rule(
        "as-is",
        r"\bas (?:is|are|was|were)(?= (?:in|on|at|for|with|by)\b|[,.;:]|$)",
        '"like", or the subject: "as it is in"',
        "The token is sent as is.",
        "It sends the token unchanged. It waits, as do other tasks.",
    ),
    Rule(
        "so-it-is",
        r"[,;:.] so (?:it is|is it|it does|do|does|are|is) ",
        '"the same holds for"',
        "It is dropped; so is the token.",
        "It is dropped, and the token too.",
    ),
    Rule(
        "also-then",
        r"\b(?:also then|then,? too|then,? also)\b",
        '"even then", "in that case too"',
        "It works, also then.",
        "It works even then.",
    ),
    Rule(
        "else",
        r"[,;:] else\b",
        '"otherwise"',
        "Present it, else the call fails.",
        "Present it; otherwise the call fails.",
    ),
    # A negation that the reader meets too late
    Rule(
        "is-no",
        r"(?<!there )\b(?:is|are|was|were) (?:no (?!longer|more|other|such|better|fewer)\w+|(?-i:none)|nobody)\b",
        '"is not a"',
        "The cursor is no number.",
        "The cursor is not a number. There is no number.",
    ),
    Rule(
        "not-at-the-end",
        r"(?:\b(?:and|but|that|these|those|others|what|this|the rest|,|;) (?:not|never)[.;])",
        'the whole verb: "does not"',
        "The first is kept, the others not.",
        "The first is kept; the others are not.",
    ),
    Rule(
        "no-more",
        r"\b(?:is|are|has|have|had) no more\b(?! than)|\bno more[.,;]|\bany more\b",
        '"no longer"',
        "It is there no more.",
        "It no longer exists. No more than ten.",
    ),
    Rule(
        "in-vain",
        r"\bin vain\b",
        '"without success", or what did not happen',
        "It waited in vain.",
        "The task never arrived.",
    ),
    # Verbs that hide who acts
    Rule(
        "waited-for",
        rf"\b{_BE} (?:not )?(?:waited|cared|accounted) for\b",
        'the actor: "the master waits for"',
        "A lost task is not waited for.",
        "The master does not wait for a lost task.",
    ),
    Rule("asked-of", r"\basked of\b", '"must present"', "It is asked of every call.", "Every call must present it."),
    Rule(
        "told",
        rf"\b{_BE} (?:not )?told\b(?! apart)",
        '"reported to", "configured", "notified"',
        "Every task is told.",
        "The service notifies every task. Unless told otherwise.",
    ),
    Rule(
        "heard-of",
        r"\bheard? of\b|\bgets? to know\b",
        '"receives", "is notified"',
        "Nothing was heard of it.",
        "It sent no heartbeat.",
    ),
    Rule(
        "becomes-of",
        r"\bbec(?:o|a)mes? of\b",
        '"happens to"',
        "What becomes of a lost task?",
        "What happens to a lost task?",
    ),
    # Words of another trade
    Rule(
        "hangs-on",
        r"\b(?:hangs?|hung) on\b",
        '"depends on"',
        "It hangs on the processor.",
        "It depends on the processor.",
    ),
    Rule("all-the-same", r"\ball the same\b", '"anyway"', "It runs all the same.", "It runs anyway."),
    Rule(
        "let-in",
        r"\b(?:let|lets|letting) (?:in|\w+ in)\b(?! which)",
        '"accepts", "admits"',
        "It lets in any client.",
        "It accepts any client.",
    ),
    Rule(
        "stand-still",
        r"\b(?:stands?|stood|standing) still\b|\bstandstills?\b",
        '"hangs", "is stuck", "is suspended"',
        "The run stands still.",
        "The run is stuck.",
    ),
    Rule(
        "beside",
        r"\bbeside\b",
        '"next to", "in addition to", "compared with"',
        "It lies beside it.",
        "It is next to it. Besides, it is fast.",
    ),
    Rule("by-hand", r"\bby hand\b", '"manually", "yourself"', "Start it by hand.", "Start it yourself."),
    Rule("but-for", r"\bbut for\b", '"except"', "All but for the slow ones.", "All except the slow ones."),
    Rule("anew", r"\banew\b", '"again", "from scratch"', "It begins anew.", "It starts again."),
    Rule(
        "go-on",
        r"\b(?:go|goes|went|going|gone) on\b(?! strike)",
        '"continue"',
        "Training goes on.",
        "Training continues.",
    ),
    Rule("former", r"\bformer\b", '"previous", "earlier"', "Its former lease.", "Its previous lease."),
    Rule(
        "in-order",
        r"\b(?:ends?|ended|closes?|closed|stops?|stopped|finishe[sd]|is|are) in order\b(?! to| of| that)",
        '"normally"',
        "It ends in order.",
        "It ends normally.",
    ),
    Rule(
        "stands-in",
        r"\b(?:stands|stand|stood) (?:in|on|at|there|here|under|once|beside|first|last|before|after|above|below)\b",
        '"is in", "is listed in"',
        "The version stands in pyproject.toml.",
        "The version is in pyproject.toml.",
    ),
    Rule(
        "lies-in",
        r"\b(?:lies|may lie|lie|lay) (?:in|on|at|there|here|under|beside|where|elsewhere)\b",
        '"is stored in", "is in"',
        "It lies on a disk.",
        "It is stored on a disk.",
    ),
    Rule(
        "write-down",
        r"\b(?:writes?|wrote|written|writing) (?:it |them |this )?down\b",
        '"record", "store"',
        "It writes it down.",
        "It records the end.",
    ),
    Rule(
        "looks-whether",
        r"\blooks? whether\b",
        '"checks whether"',
        "It looks whether it lives.",
        "It checks whether it is alive.",
    ),
    Rule("mend", r"\bmend(?:s|ed|ing)?\b", '"fix"', "It is mended.", "It is fixed."),
    Rule(
        "is-tried",
        rf"\b{_BE} tried\b|\bwhat tries\b|\btried by\b",
        '"tested", "attempted"',
        "It is tried by a test.",
        "A test covers it.",
    ),
    Rule("once-more", r"\bonce more\b", '"again"', "It is sent once more.", "It is sent again."),
    Rule("upon", r"\bupon\b", '"on", "when"', "Upon a failure.", "On a failure."),
    Rule(
        "archaic",
        r"\b(?:whereby|wherein|where(?:of|upon)|there(?:of|in|upon)|till|nought|lest|ere|shall|hither|thence|whence)\b",
        "the plain word",
        "It runs till noon.",
        "It runs until noon.",
    ),
    Rule(
        "turn-of",
        r"\b(?:turns? of (?:a|the|its|one|each) (?:event )?loop|\d+ turns|(?:each|every|a|one|next) turn)\b",
        '"iteration"',
        "It runs each turn.",
        "It runs in each iteration.",
    ),
    # Chains
    Rule(
        "of-chain",
        r"\bof (?:[\w'-]+ ){1,3}of (?:[\w'-]+ ){1,3}of\b",
        "a possessive, a compound noun, or two sentences",
        "The end of the lease of a task of the cluster.",
        "The end of a task's lease.",
    ),
)
