#!/bin/sh
# An MCP server in a few lines. Beside this file it notes its processes (.pids), what it reads (.log) and what was
# said to its form and page (.form, .page). What a call asks it for is in the arguments; `wait` is never answered without that.
echo "$$" >> "$0.pids"
[ "$1" = broken ] && { echo "no database" >&2; exit 3; }
[ -n "$TOKEN" ] && echo "a remark with $TOKEN" >&2
ask() { call=$id; printf '{"jsonrpc":"2.0","id":"%s","method":"%s","params":%s}\n' "$1" "$2" "$3"; }
said() { result='{"content":[{"type":"text","text":"'"$1"'"}]}'; }
while read -r line; do
  echo "$line" >> "$0.log"
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"shell","version":"1"},"instructions":"Greet people by name."}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"greet","description":"Greets","inputSchema":{"type":"object","properties":{"who":{"type":"string"}}},"annotations":{"readOnlyHint":true}},{"name":"visit","description":"Visits","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"openWorldHint":true}},{"name":"wait","inputSchema":{"type":"object","oneOf":[{"required":["a"]},{"not":{"required":["a"]}},{"required":["b"]}]}}]}' ;;
    *'"prompts/list"'*) result='{"prompts":[{"name":"hail","description":"Hails somebody","arguments":[{"name":"who","required":true}]}]}' ;;
    *'"prompts/get"'*) result='{"messages":[{"role":"user","content":{"type":"text","text":"Hail them all"}}]}' ;;
    *'"resources/read"'*) result='{"contents":[{"uri":"list://people","text":"Ann and Bob"}]}' ;;
    *'"id":"question"'*) id=$call; said noted ;;
    *'"id":"form"'*) id=$call; printf '%s' "$line" > "$0.form"; said filled ;;
    *'"id":"page"'*) id=$call; printf '%s' "$line" > "$0.page"; printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e1"}}'; said opened ;;
    *'"ask":true'*) ask question elicitation/create '{"message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}'; continue ;;
    *'"sample":true'*) ask question sampling/createMessage '{"messages":[{"role":"user","content":{"type":"text","text":"What is 2 + 2?"}}],"maxTokens":50}'; continue ;;
    *'"form":true'*) ask form elicitation/create '{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"Name"},"age":{"type":"integer","maximum":150},"kind":{"type":"string","enum":["a","b"],"enumNames":["Ay","Bee"]}},"required":["name"]}}'; continue ;;
    *'"page":true'*) ask page elicitation/create '{"mode":"url","elicitationId":"e1","message":"Please pay","url":"https://pay.example.com/x"}'; continue ;;
    *'"fail":true'*) result='{"content":[{"type":"text","text":"no"}],"isError":true}' ;;
    *'"greet"'*) said "Hello from ${WHO:-the server}" ;;
    *'"visit"'*) said seen ;;
    *) continue ;;
  esac
  [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
