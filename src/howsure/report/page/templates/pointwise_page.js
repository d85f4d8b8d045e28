"use strict";
(() => {
  // Where there are several options, one is shown. Without this code all of them are.
  for (const choice of document.querySelectorAll(".choice")) {
    const select = choice.querySelector("select");
    const options = [...select.options].map((one) => document.getElementById(one.value));
    const show = () => {
      for (const option of options) {
        option.setAttribute("aria-hidden", String(option.id !== select.value));
      }
    };
    select.addEventListener("change", show);
    show();
  }
})();
