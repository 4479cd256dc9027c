// page.html, MILLRACE_PAGE, as read-only data, and how many bytes it has.
  .section .rodata.millrace_page, "a", %progbits
  .globl millrace_page, millrace_page_bytes
  .hidden millrace_page, millrace_page_bytes
  .type millrace_page, %object
  .type millrace_page_bytes, %object

millrace_page:
  .incbin MILLRACE_PAGE
.Lend:
  .size millrace_page, .Lend - millrace_page

  .balign 8
millrace_page_bytes:
  .quad .Lend - millrace_page
  .size millrace_page_bytes, 8

  .section .note.GNU-stack, "", %progbits
