/* A library beside the plugins that is none. */
int ashlar_is_something_else(void);
int ashlar_is_something_else(void) { return 1; }
