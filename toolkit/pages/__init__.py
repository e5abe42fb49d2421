"""Pages for a browser: whole in one file, closed to the network, made of text that may be hostile.

`static/` has our styles and scripts, as a browser reads them: nothing builds them (prettier keeps their form, lines
of 120). `vendor/` has the one library of charts, with its licence. `assets` puts a template and its parts into one
page, under a policy that lets no other code run. What comes from documents reaches a page as JSON, and is shown as text
(``textContent``), never as HTML.
"""
