// The fat binary MILLRACE_KERNEL_IMAGE as read-only data, and how many bytes it has.
  .section .rodata.millrace_kernel_image, "a", %progbits
  .globl millrace_kernel_image, millrace_kernel_image_bytes
  .hidden millrace_kernel_image, millrace_kernel_image_bytes
  .type millrace_kernel_image, %object
  .type millrace_kernel_image_bytes, %object

  .balign 64
millrace_kernel_image:
  .incbin MILLRACE_KERNEL_IMAGE
.Lend:
  .size millrace_kernel_image, .Lend - millrace_kernel_image

  .balign 8
millrace_kernel_image_bytes:
  .quad .Lend - millrace_kernel_image
  .size millrace_kernel_image_bytes, 8

  .section .note.GNU-stack, "", %progbits
