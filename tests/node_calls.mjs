// Calls tools with a client on the official TypeScript SDK, which checks each answer against the
// schema that it was told; test_node_client.py runs it and reads the answers.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [calls, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "tests", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const results = [];
for (const [name, given] of JSON.parse(calls)) {
  results.push(await client.callTool({ name, arguments: given }));
}
const resources = client.getServerCapabilities().resources ? await client.listResources() : null;
await client.close();
console.log(JSON.stringify({ tools, results, resources }));
