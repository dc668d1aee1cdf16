"""The page of `aiaml web`: search, read, edit, forget and restore memories in a browser.

    app        the server: socket, routes, errors, and when it ends
    guard      which requests are let in, and the headers of each answer
    api        what the page asks for, as JSON
    serialize  memories, versions and counts as JSON values
    browser    how the browser is opened without the token on a command line

The text of a memory is untrusted. It reaches the page as JSON and is inserted as text; only the
output of `rendering.safe_html` is inserted as HTML.
"""
