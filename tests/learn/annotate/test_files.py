"""What a model has said becomes annotation files of ml_filter, with the model, the prompt and its language."""

import json

from tests.learn.annotate.conftest import Annotated


def test_what_was_asked_becomes_annotation_files(project: Annotated) -> None:
    """Statuses are those of ml_filter; a document that was not asked about has no line; a rerun writes nothing."""
    project.entry |= {"samples": 2, "retries": 0, "max_failed": 1, "when": "document.chars > 3"}
    project.write(["a text", "[400] refused", "x", "[silent] text"])
    assert project.run().code == 0
    rows = project.rows()
    out = project.root / "exp"
    ran = project.run("--from", "edu-0", "--output", out, "--json").succeeds()
    assert (ran.json["documents"], ran.json["without"]) == (3, 1)
    (path,) = (out / "generated_annotations").iterdir()
    assert path.name == "a__annotations_org--model_educational_value_en.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["document_id"] for line in lines] == ["a0", "a1", "a3"]
    for line, row in zip(lines, [rows[0], rows[1], rows[3]], strict=True):
        for name in ("scores", "explanations", "errors", "time_stamps"):
            assert line[name] == row[name]
    success, refused, silent = (line["document_processing_status"] for line in lines)
    assert success == ["success"] * 2
    assert refused == ["error_server"] * 2
    assert silent == ["error_no_generated_text"] * 2
    meta = lines[0]["meta_information"]
    assert meta.pop("out_tokens_per_second") > 0
    assert meta == {
        "prompt_name": "educational_value",
        "prompt_lang": "en",
        "model_name": "org/model",
        "raw_data_file_path": str(project.root / "data/documents/a.jsonl"),
    }
    assert project.run("--from", "edu-0", "--output", out, "--json").json["written"] == 0
