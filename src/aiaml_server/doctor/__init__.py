"""`doctor`: checks whatever somebody who helps would ask for.

    finding      what a check found, and what is safe to mend
    context      what all checks look at
    program      the installation
    environment  the settings
    offered      the toolsets
    place        the base directory and its disk
    scan         one reading of all files
    memories     what is wrong with files
    answers      the index against the files
    syncing      git and the remote
    connected    the configurations of clients
    trial        a server, started as clients do

A check is a function that yields its findings. It writes nothing but what it removes again; what it
needs beyond the standard library is imported when it runs.
"""
