// A libcuda.so.1 that lacks all but one of the functions that the daemon needs.
extern "C" __attribute__((visibility("default"))) int cuInit(unsigned) {
  return 0;
}
