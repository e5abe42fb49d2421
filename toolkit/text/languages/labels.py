"""Labels of languages: what they are in BCP 47, which are known, and which one a path says.

Labels on disk stay as a model gives them; this is what descriptions make of them.

Source: the labels of fastText's lid.176 (fasttext.cc, language identification); its training data are Wikipedias,
whose codes they are: ``als`` is Alemannic (als.wikipedia.org), in ISO 639-3 Tosk Albanian; ``eml`` was withdrawn from
ISO 639-3 in 2009, when it was split into ``egl`` and ``rgn``, and is in no registry. OSCAR 23.01 writes ``gsw`` and
``x-eml`` for them (ungoliant 2.0, ``tag_convert.rs``). All others are subtags of the IANA registry of 2021-08-06,
also ``bh`` and ``sh``, which ISO 639-1 has withdrawn and BCP 47 has not (``bih`` and ``hbs`` are no subtags).
GlotLID: ISO 639-3 and ISO 15924, joined by ``_``; RFC 5646, 2.2.1: the shortest code; 4.1: no script that the
registry calls usual (``Suppress-Script``).
"""

import functools
import posixpath
import re
from collections.abc import Iterable
from typing import Literal

LabelForm = Literal["model", "bcp47", "oscar"]
"""How labels of languages are written: as the model has them, as BCP 47 tags, or as OSCAR does, which are lid.176's."""

_LID_176 = (
    "af als am an ar arz as ast av az azb ba bar bcl be bg bh bn bo bpy br bs bxr ca cbk ce ceb ckb co cs cv cy da de "
    "diq dsb dty dv el eml en eo es et eu fa fi fr frr fy ga gd gl gn gom gu gv he hi hif hr hsb ht hu hy ia id ie "
    "ilo io is it ja jbo jv ka kk km kn ko krc ku kv kw ky la lb lez li lmo lo lrc lt lv mai mg mhr min mk ml mn mr "
    "mrj ms mt mwl my myv mzn nah nap nds ne new nl nn no oc or os pa pam pfl pl pms pnb ps pt qu rm ro ru rue sa sah "
    "sc scn sco sd sh si sk sl so sq sr su sv sw ta te tg th tk tl tr tt tyv ug uk ur uz vec vep vi vls vo wa war wuu "
    "xal xmf yi yo yue zh"
)
LID_176 = frozenset(_LID_176.split())
"""The labels of lid.176."""

TAGS = {"als": "gsw", "eml": "x-eml", "in": "id", "iw": "he", "ji": "yi", "jw": "jv", "mo": "ro"}
"""Labels that mean another tag: lid.176's two, and codes that the registry has replaced, which other models give."""

NO_LANGUAGE = ("multi", "mul", "und", "unk", "mis", "zxx", "none")
"""Labels that name no language."""

_PAIRS = (
    "aar:aa abk:ab afr:af aka:ak amh:am ara:ar arg:an asm:as ava:av ave:ae aym:ay aze:az bak:ba bam:bm bel:be ben:bn "
    "bih:bh bis:bi bod:bo bos:bs bre:br bul:bg cat:ca ces:cs cha:ch che:ce chu:cu chv:cv cor:kw cos:co cre:cr cym:cy "
    "dan:da deu:de div:dv dzo:dz ell:el eng:en epo:eo est:et eus:eu ewe:ee fao:fo fas:fa fij:fj fin:fi fra:fr fry:fy "
    "ful:ff gla:gd gle:ga glg:gl glv:gv grn:gn guj:gu hat:ht hau:ha hbs:sh heb:he her:hz hin:hi hmo:ho hrv:hr hun:hu "
    "hye:hy ibo:ig ido:io iii:ii iku:iu ile:ie ina:ia ind:id ipk:ik isl:is ita:it jav:jv jpn:ja kal:kl kan:kn kas:ks "
    "kat:ka kau:kr kaz:kk khm:km kik:ki kin:rw kir:ky kom:kv kon:kg kor:ko kua:kj kur:ku lao:lo lat:la lav:lv lim:li "
    "lin:ln lit:lt ltz:lb lub:lu lug:lg mah:mh mal:ml mar:mr mkd:mk mlg:mg mlt:mt mon:mn mri:mi msa:ms mya:my nau:na "
    "nav:nv nbl:nr nde:nd ndo:ng nep:ne nld:nl nno:nn nob:nb nor:no nya:ny oci:oc oji:oj ori:or orm:om oss:os pan:pa "
    "pli:pi pol:pl por:pt pus:ps que:qu roh:rm ron:ro run:rn rus:ru sag:sg san:sa sin:si slk:sk slv:sl sme:se smo:sm "
    "sna:sn snd:sd som:so sot:st spa:es sqi:sq srd:sc srp:sr ssw:ss sun:su swa:sw swe:sv tah:ty tam:ta tat:tt tel:te "
    "tgk:tg tgl:tl tha:th tir:ti ton:to tsn:tn tso:ts tuk:tk tur:tr twi:tw uig:ug ukr:uk urd:ur uzb:uz ven:ve vie:vi "
    "vol:vo wln:wa wol:wo xho:xh yid:yi yor:yo zha:za zho:zh zul:zu"
)
_SHORTER = dict(pair.split(":") for pair in _PAIRS.split())
"""Codes of ISO 639 of three letters whose subtag has two."""

_USUAL = {
    code: script
    for script, codes in {
        "Arab": "ar fa ps ur",
        "Armn": "hy",
        "Beng": "as bn",
        "Blis": "zbl",
        "Cyrl": "ab be bg kk mk ru uk",
        "Deva": "hi kok mai mr ne",
        "Ethi": "am ti",
        "Geor": "ka",
        "Grek": "el",
        "Gujr": "gu",
        "Guru": "pa",
        "Hebr": "he yi",
        "Jpan": "ja",
        "Khmr": "km",
        "Knda": "kn",
        "Kore": "ko",
        "Laoo": "lo",
        "Latn": "af ay bs ca ch cs cy da de dsb en eo es et eu fi fj fo fr frr frs fy ga gl gn gsw gv hr hsb ht hu id "
        "is it kl la lb ln lt lv men mg mh ms mt na nb nd nds niu nl nn no nr nso ny om pl pt qu rm rn ro rw sg sk sl "
        "sm so sq ss st sv sw tem tkl tl tmh tn to tpi tr ts tvl ve vi xh zu",
        "Mlym": "ml",
        "Mymr": "my",
        "Nkoo": "nqo",
        "Orya": "or",
        "Sinh": "si",
        "Taml": "ta",
        "Telu": "te",
        "Thaa": "dv",
        "Thai": "th",
        "Tibt": "dz",
    }.items()
    for code in codes.split()
}
"""The script that a language is usually written in, by its subtag: it is left out."""

WELL_FORMED = re.compile(
    r"[a-z]{2,3}(-[a-z]{3}){0,3}"  # with extended language subtags
    r"(-[a-z]{4})?(-([a-z]{2}|\d{3}))?"  # script, region
    r"(-([a-z0-9]{5,8}|\d[a-z0-9]{3}))*"  # variants
    r"(-[a-wyz0-9](-[a-z0-9]{2,8})+)*(-x(-[a-z0-9]{1,8})+)?"  # extensions, private use
    r"|x(-[a-z0-9]{1,8})+",
    re.IGNORECASE | re.ASCII,
)
"""A well-formed tag of a language. Source: RFC 5646, section 2.1."""

_TWO_LETTERS = frozenset(_SHORTER.values())
_WITH_SCRIPT = re.compile(r"([a-z]{3})[_-]([a-z]{4})", re.IGNORECASE | re.ASCII)
"""A label of GlotLID, and of models that label as it does."""

_ENDING = re.compile(r"(?:_meta)?(?:_part)?_\d+$|_meta$")
"""Endings of file names after the label: ``_part_1``, and in releases ``_meta``, ``_meta_part_1``, ``_meta_1``."""

_COMPRESSIONS = (".gz", ".zst", ".zstd", ".bz2", ".xz")


@functools.lru_cache(1 << 12)
def tag_of(label: str) -> str | None:
    """Return the BCP 47 tag of a label, in its usual case; None of a label that names no language.

    Labels are those of lid.176, of GlotLID (``deu_Latn``), or tags, whatever their case, with ``_`` or ``-``.
    """
    lower = label.lower()
    if (tag := TAGS.get(lower)) is not None:
        return tag
    text = lower.replace("_", "-")
    if not WELL_FORMED.fullmatch(text):
        return None
    code, *more = text.split("-")
    if code == "x":
        return text
    code = _SHORTER.get(code, code)
    if code in NO_LANGUAGE or (len(code) == 2 and code not in _TWO_LETTERS):
        return None
    if more and len(more[0]) == 4 and more[0].isalpha() and _USUAL.get(code) == more[0].title():
        del more[0]
    return "-".join([code, *_cased(more)])


def _cased(subtags: list[str]) -> Iterable[str]:
    """Yield subtags behind the first in the case of RFC 5646, 2.1.1: scripts in title case, regions in upper."""
    private = False
    for subtag in subtags:
        private = private or len(subtag) == 1
        if private or len(subtag) not in (2, 4) or not subtag.isalpha():
            yield subtag
        else:
            yield subtag.upper() if len(subtag) == 2 else subtag.title()


_OTHERWISE = (
    "als:sq arb:ar azj:az bho:bh cmn:zh egl:eml ekk:et fil:tl gsw:als gug:gn khk:mn kmr:ku kpv:kv lvs:lv nob:no "
    "npi:ne ory:or pbt:ps pes:fa plt:mg quy:qu rgn:eml swh:sw uzn:uz ydd:yi zsm:ms"
)
_OSCAR = dict(pair.split(":") for pair in _OTHERWISE.split())
"""Labels of lid.176 for languages of ISO 639-3 that it does not tell from their macrolanguage, or calls otherwise.

Sources: the macrolanguages of ISO 639-3; for ``als`` and ``eml`` see above.
"""


@functools.lru_cache(1 << 12)
def in_form(label: str, form: LabelForm) -> str | None:
    """Return the label of a language in another form; None of a label that names no language.

    For ``oscar``, scripts are left out where lid.176 knows the language; a language that it does not know has its
    BCP 47 tag, in lower case.

    >>> (
    ...     in_form("eng_Latn", "bcp47"),
    ...     in_form("arb_Arab", "oscar"),
    ...     in_form("als_Latn", "oscar"),
    ...     in_form("als", "bcp47"),
    ... )
    ('en', 'ar', 'sq', 'gsw')
    """
    if form == "model":
        return label
    tag = tag_of(label)
    if form == "bcp47" or tag is None or label in LID_176:
        return tag if form == "bcp47" or tag is None else label
    code = label.partition("_")[0].partition("-")[0].lower()
    result = _OSCAR.get(code) or _SHORTER.get(code, code)
    return result if result in LID_176 else tag.lower()


def tags_of(labels: Iterable[str]) -> list[str]:
    """Return the distinct tags of language labels, in order."""
    return list(dict.fromkeys(tag for label in labels if (tag := tag_of(label)) is not None))


def code_of(tag: str) -> str | None:
    """Return the language of a tag without script and region; None of one for private use."""
    code = tag.partition("-")[0].lower()
    return None if code == "x" else code


def is_known(label: str) -> bool:
    """Return True for a label of lid.176 or GlotLID.

    So are tags in descriptions, and the label of several languages.
    """
    lower = label.lower()
    if lower in LID_176 or lower in TAGS.values() or lower == "multi":
        return True
    return _WITH_SCRIPT.fullmatch(label) is not None


def label_of_path(path: str) -> str | None:
    """Return the label in a data file's path; None without one.

    If folder and file have the same name, that is the label (``de/de_part_1.jsonl.gz``, or
    ``de_meta/de_meta_part_1.jsonl.gz`` as released). Otherwise the label is the name of the folder if that is a known
    label, else the name of the file if that is one. Part numbers and ``_meta`` belong to a label only if the folder is
    called exactly as the file is.

    Args:
        path: Path of a file, relative to what is looked at.
    """
    name = posixpath.basename(path)
    for ending in _COMPRESSIONS:
        name = name.removesuffix(ending)
    name = posixpath.splitext(name)[0]
    folder = posixpath.basename(posixpath.dirname(path))
    bare_folder, bare_name = folder.removesuffix("_meta") or folder, _ENDING.sub("", name) or name
    if folder and name == folder:
        return bare_folder
    if folder and bare_name in (folder, bare_folder):
        return bare_folder
    return next((item for item in (bare_folder, bare_name) if is_known(item)), None)
