# The editor of a program in a terminal: it takes the words that wait to be typed there, where a
# paste would change them; for a person it is the editor that they have.
waiting="$FLEET_RUN_DIR/typed.text"
if [ -n "$FLEET_RUN_DIR" ] && [ -f "$waiting" ]; then
    for file; do :; done
    cat "$waiting" >"$file" && exec rm -f "$waiting"
    exit 1
fi
# shellcheck disable=SC2086  # it may have options
exec ${FLEET_EDITOR:-vi} "$@"
