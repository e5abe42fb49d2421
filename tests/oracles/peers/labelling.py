"""What the clients of Label Studio and Argilla make of tasks and records, and what Argilla writes of its own.

    PEER/bin/python labelling.py TASKS RECORDS FOLDER

TASKS is a file for Label Studio, RECORDS one for Argilla 2, both with numbers suggested for the question `edu`.
"""

import json
import sys
import uuid
from pathlib import Path

import argilla
from argilla.records._io import JsonIO
from label_studio_sdk.label_interface import LabelInterface
from label_studio_sdk.label_interface.objects import TaskValue

CONFIG = '<View><Text name="text" value="$text"/><Number name="edu" toName="text" min="0" max="9"/></View>'

tasks_path, records_path, folder = map(Path, sys.argv[1:])
interface = LabelInterface(CONFIG)
tasks = json.loads(tasks_path.read_text())
for task in tasks:
    TaskValue(**task)
faults = [
    fault for task in tasks for each in task["predictions"] for fault in interface.validate_prediction(each, True)
]
valid = all(interface.validate_task({"data": task["data"]}) for task in tasks)

records = JsonIO._records_from_json(records_path)
found = {
    "faults": faults,
    "valid": valid,
    "same": [record.to_dict()["suggestions"] for record in records]
    == [
        {name: {"score": None, "type": None, **each} for name, each in row["suggestions"].items()}
        for row in json.loads(records_path.read_text())
    ],
    "suggestions": [record.suggestions.to_dict() for record in records],
    "ids": [record.id for record in records],
}
for record in records:
    for value, label in ((3, "good"), (4, "bad")):
        user = uuid.UUID(int=value)
        record.responses.add(argilla.Response("edu", value, user_id=user, status="submitted"))
        record.responses.add(argilla.Response("quality", label, user_id=user, status="submitted"))
JsonIO.to_json(records, folder / "answered.json")
print(json.dumps(found))
