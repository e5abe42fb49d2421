"""Rules: what a mix does with each document.

    rules:
      - {drop: language.label is None, name: unidentified}    # the first rule that drops a document gets the count
      - keep: language.label in ["en", "fr"]                  # drop: not (…)
      - {drop: blocklist, files: takedowns.txt}               # documents that are listed
      - {keep: python, function: "my.py:function"}           # a function of the document and its attributes
      - {sample: 0.1, when: label == "en"}                    # a tenth stays, the same on every machine
      - {annotate: short_sentences, when: line_shape.short > line_shape.lines // 2}
      - {set: quality, to: 1 - noise.noise / noise.chars}     # a field of the metadata
      - {route: '"long" if document.chars > 5000 else label'} # the output folder
      - {replace: emails, by: "|||EMAIL|||", min_score: 0.5}  # spans; {} is the original text, {tag} the rule's name
      - {cut: repeated}                                       # spans go
      - {cut: lines, when: line_language is None}             # lines go; here a list stands for its line's element
      - {group: shape, when: label != "ja", rules: […]}       # rules under a common name and condition
      - include: shared.yaml                                  # a list of rules, or a configuration with mix.rules

Rules are evaluated in order, on the document's original values. Edits are applied together, after all decisions.

Each kind of rule is one file of `kinds`. `reading` makes a `Rule` of YAML; a `Compiler` checks it against the types
of attributes and makes a `CompiledRule` of it, which applies the rule to one document. A `RuleSet` has the rules of a
stream, in order.
"""
