// What a client on Vercel's AI SDK does; test_node_client.py runs it and reads the answer.
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as Transport } from "@ai-sdk/mcp/mcp-stdio";

const [base, command, ...args] = process.argv.slice(2);
const env = { ...process.env, AIAML_MEMORY_DIR: base, AIAML_ENABLE_SYNC: "false" };
const client = await createMCPClient({ transport: new Transport({ command, args, env }) });
const era = client.protocolEra ?? null;
const tools = await client.tools();
const call = { toolCallId: "1", messages: [] };
const found = await tools.think.execute({ keywords: ["needle"] }, call);
await client.close();
console.log(JSON.stringify({ era, tools: Object.keys(tools), found }));
