"""Pages that people look at in a browser: whole in one file, closed to the network, made of text that may be hostile.

`static/` has our styles and scripts, as a browser reads them: nothing builds them. `vendor/` has the one library of
charts, with its licence. `assets` puts a template and its parts into one page, under a policy that lets no other code
run. All that comes from documents reaches a page as JSON, and the page as text (``textContent``), never as HTML.
"""
