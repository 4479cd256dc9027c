// Marks what libmillrace.so shows to others; everything else in it stays hidden.
#pragma once

#define MILLRACE_API __attribute__((visibility("default")))
