/* SPDX-License-Identifier: Apache-2.0 */
/* Written by protocol.py; bytes in hexadecimal. */

static const char given_run[] =
     "94c4ed083e00cc84bf3879fc267dbfd0";
static const char given_roster[] =
     "fc93bcf4f89829e0424a096fc60bc272c7f679bf34b71fabf1c9dcf3a9c2d19f";
static const char given_config[] =
     "9606e0aea89df6c7dae6c2de9586940eacf6a9815fbdf158c53f36b4205e584e";
static const char given_keys[] =
     "02afc408e883484a8dee5846c763144133494f92dcc3ba7e0a20db89cde97ca8"
     "10a0945b72ae332feac8bfde1f5e88acbcd4d4f796b188379cd0ca969e7fd349"
     "e0df94ffb1609285ca2bcbf4bbf6214fdf543b9622d1ca501d96139f54bf59d9"
     "2a12e2e19889016a8feed6de89934f98386fee4e626882c685a08e0da6edacaa"
     "0a6556b2cbfe10213fa41cec362654cde651575e456c3fe466da20fabf5e6bca"
     "281349b0d8b10a5dd3fca6e87d82f8b1c09325603a7c803df504286f2cc5e352";
static const char given_ek[] =
     "f798e2bf5aed4a58ff04fd53228df53227e1495695a16a6c36bb2523c40fd1a1";
static const char given_ek_2[] =
     "ac36023d87fcea2fb331c740cea46098fcaae58189a06a93b45c8e26a63992a9";
static const char given_hk_2[] =
     "c19038ae1c1f870c4d5d147eb95629ee59e5a49570534ec47c1af449e3db623c";
static const char given_dealt_2[] =
     "6ce1f25a7607960458082ee2b6f82942195b4859019186178f2ceb4d4832d294";
static const char given_dig_10[] =
     "c588194cefbccd7a809b0b05224716e27387a4b25d9227f0a265657f468abbe8";
static const char given_dig_11[] =
     "2215174840d93ce8198069a3651072a957ad9752e09e7ffbfa0089f81aaac5a1";
static const char given_log_head[] =
     "a35a6ac896baabbb0a1fb2fee285464d821ad4dbe708e5709e413245441419a3";
static const char given_seed[] =
     "8c08b26eee5588c29d572e58d4278efcf800f3f70f58836c456612cf49ebc056"
     "b309c99b72769bf5ed73bc5c766c2164573088f24ad0f7eeda81240e88670ed5";
static const char given_seed_site_a[] =
     "4959cc9cc005dc30ee2dea11f67889d1af186b4eee05f2a75d734a364bd85367"
     "2e21f37604674c9ff60e473fdf3d24cc693d53d1678fb78bb1788d6fd08d0bd0";
static const char given_seed_site_b[] =
     "fefd03401b4ebeab077417ddc76a55d5acae0c8e5e8bf26aa2cfde92ad822ca0"
     "cb45373d69677fda89a71697cc75999582c4b867c070bb4f1221fb921fe9ee3c";
static const char given_seed_server[] =
     "af0c4991cdd68e439b04247af41485f9ca2a88b56e7c7ccc04c1135d5e5f26a7"
     "822f3c64883cebc6f95ad0bd13eeb9ca90ce56aea656d49c3ddaa42e40663ffd";

static const char known_hk[] =
     "b61cd9a4793f342c71377e81bf8dbeb0feb4fa6e73576acbd37012a7b04cde50";
static const char known_enroll[] =
     "d7a570c6e820682f9a9d907db4c76b979c72b21c1cefe83978feae9dbc818d53";
static const char known_dealt[] =
     "4d01b052d6a6ca8427558604b19d07d3f3d61597e96c6cab734192de8e37703d";
static const char known_setup[] =
     "026f51e4b80c6b0ee9337db42220e97557873f7c76eafbc6a2978473796601e1";
static const char known_model[] =
     "54a1ef987866f0782ac422d5b0e4cee7751541c721f82811f72a81b0b76ff10a";
static const char known_ctx[] =
     "e44cc583f0220066fc400f880292c8a6d922c196fdc403779fb462e23eb37729";
static const char known_ctx2[] =
     "ebb38c88014fb129bc21aa7be0c067f0d0d328170d02d4ee0b620cb0a932139e";
static const char known_dig[] =
     "c8881f9f0bfa89dccb8e60b504bb6cd72d81e465776470bcb1f5a2e669b27506";
static const char known_stmt[] =
     "bdd16705a415dd91d48935c5cf961b7408f14a5ebd495b4256d021c0839e29d0";
static const char known_envelope[] =
     "444146310894c4ed083e00cc84bf3879fc267dbfd00900000002011100000003"
     "000000a35a6ac896baabbb0a1fb2fee285464d821ad4dbe708e5709e41324544"
     "1419a32000000000000000e44cc583f0220066fc400f880292c8a6d922c196fd"
     "c403779fb462e23eb3772992d27b6e2054563454f0d819e38aa680fe69802f2f"
     "6969f266bf62b4f21d672a9b483e7bb06387363c7cfbbd32f7fdefc86f29de80"
     "57be615403749720a5b10f";
static const char known_roster_bytes[] =
     "444146520300000006736974652d610000002111f55b4c34e73fa66921701a17"
     "710b67f060ab3e7288976beb053976e0ddc80f47a0b5364e48c26cedc45a261d"
     "3a42170d71ad707d7f3ef3ee6beb92b31223010006736974652d6200000035a8"
     "c9e31902bed48c2d16e39146bde9e4039ef382f1a5fc23920c80b7505b59727c"
     "b165b9e4db826c5584255541b040fa19ebab5d013549e1e251a928afd54a0200"
     "0673657276657201ffffe14a9019e7e0138f866e5b3880fe2657dcf83e684b77"
     "d792fa740dfd0a6fd0b60a91bab26d467a7b386899c6de5d398d5e6da03c306e"
     "19e2ce81d632da17cb4d";
static const char known_roster_digest[] =
     "aac30fc1991be43745d5abd77168be92538e6511bb4200ceac3139c2ccafb236";
