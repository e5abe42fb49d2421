"use strict";
page.start();
