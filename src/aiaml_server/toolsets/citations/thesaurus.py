"""Words that mean nearly the same to people who write software, in groups."""

from __future__ import annotations

from functools import cache

from aiaml_server.toolsets.citations.words import stem

_GROUPS = """
abort cancel stop kill terminate interrupt
access permission authorization authorize right grant acl
alter change modify edit transform convert conversion
app application program
argument parameter option flag variable placeholder
array list sequence vector
asset static file
asynchronous async background concurrent deferred parallel
attribute field column property member
auth authentication authenticate login signin credential
batch chunk bulk block
begin start startup boot launch lifespan init initialize
body payload content
broken fail failure error exception crash raise bug
build compile bundle
button click control widget
bytes size length limit threshold minimum maximum
cache memoize store keep
ci pipeline workflow action build
class type kind
close end finish shutdown terminate
code status number
compress compression gzip deflate zip
config configuration setting preference option environment
confidential secret private encrypt encryption secure security
cookie session
copy clone duplicate
count total number sum
create make add insert new
credential password secret token key
csv comma tsv separated
cut truncate shorten
database db sqlite sql storage
date time timestamp day
default standard usual
delete remove drop erase purge clear
dependency package library module requirement
deprecated obsolete old legacy
detect sniff guess infer inference recognize determine
dict dictionary map object json mapping
digest hash checksum sha
dir directory folder
disk file temporary
document docs documentation readme
download fetch load get pull
empty blank null none missing
endpoint route url path handler link address
environment env dotenv variable
extension plugin addon module
fast quick speed performance slow latency
find search look query lookup
follow symlink link
format layout shape form
geo geographic gis spatial spatialite location map
id identifier key pk
image picture photo
import load read ingest
index fts search
interpreter python runtime version
job task work worker
jinja template html render
layer middleware wrapper
log logging journal record
lock mutex exclusive
merge combine join upsert
message mail notification
money price cost cent currency
move rename relocate
multipart upload form
order sequence priority precedence sort
origin cors cross
page view screen
parse read decode
persist save store write keep
pool connection reuse
process thread
queue stream buffer
quote escape
record row entry item
refuse reject deny forbid
repo repository
request call query
response answer reply result
retry again repeat twice
round rounding precision
row record line
run execute exec
schema table structure migration
send emit publish
serialize json dump encode
server service backend daemon host
shell terminal command cli console
socket websocket ws
test testing unit spec
text string
trigger hook event callback
update refresh sync
user person account customer
valid check verify validate
version release
wait sleep delay timeout
win precedence priority
"""


@cache
def groups() -> dict[str, frozenset[str]]:
    """Return the stems that mean nearly the same as each stem, itself left out."""
    found: dict[str, set[str]] = {}
    for line in _GROUPS.split("\n"):
        stems = {stem(each) for each in line.split()}
        for each in stems:
            found.setdefault(each, set()).update(stems - {each})
    return {each: frozenset(others) for each, others in found.items()}
