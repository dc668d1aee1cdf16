"""`web`: a page for the person to see, search, correct and forget memories. On this machine only.

    service      the socket, uvicorn, and how it ends
    connections  which stay open, as anybody may connect
    leading      how the browser gets there, past the list of processes
    guard        who may ask: this machine, this page, whoever has the token
    pages        the fixed files in static/, and what is answered when something goes wrong
    places       the directory that is shown, and the files in it
    choice       which memories a request means
    api          what the page asks for, as JSON
    edits        what it changes

What a memory says reaches the page as JSON and enters it as text; only what `safe_html` made enters
as HTML. Nothing here is imported before the verb is used, and nothing of it by the MCP server.
"""
