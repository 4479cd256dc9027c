// In the wheel's millrace_daemon/lib this is libjbig.so.0, which Debian's libtiff is linked to. JBIG-KIT's own is under the GPL, and has
// no business beside a daemon that decodes no JBIG: it refuses TIFF files of that compression before libtiff decodes anything. Were it
// asked all the same, it would say that the data cannot be decoded.
//
// The names are those of JBIG-KIT 2.1 that libtiff 4 imports. Nothing behind their pointers is looked at.

enum { kNothingIsDecoded = 64 };  // JBG_EINVAL: 4 << 4

void jbg_dec_init(void *state) {
  (void)state;
}
int jbg_dec_in(void *state, unsigned char *data, unsigned long bytes, unsigned long *used) {
  (void)state, (void)data, (void)bytes, (void)used;
  return kNothingIsDecoded;
}
unsigned long jbg_dec_getsize(const void *state) {
  (void)state;
  return 0;
}
unsigned char *jbg_dec_getimage(const void *state, int plane) {
  (void)state, (void)plane;
  return 0;
}
const char *jbg_strerror(int error) {
  (void)error;
  return "JBIG is not decoded here";
}
int jbg_newlen(unsigned char *data, unsigned long bytes) {
  (void)data, (void)bytes;
  return kNothingIsDecoded;
}
void jbg_dec_free(void *state) {
  (void)state;
}

void jbg_enc_init(void *state, unsigned long width, unsigned long height, int planes, unsigned char **rows, void *write, void *context) {
  (void)state, (void)width, (void)height, (void)planes, (void)rows, (void)write, (void)context;
}
void jbg_enc_out(void *state) {
  (void)state;
}
void jbg_enc_free(void *state) {
  (void)state;
}
