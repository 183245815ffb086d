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
static const char given_params[] =
     "7419fdeb5f5ddd095e28afe0afff89497befb885b1ce5e26eb70967327a24ef0"
     "c64c5815e734722d4212acac64ffdefb74c163d61c5e64004298356078e1bce4"
     "563a1f95492393be95dd30d4745553e804b647a5f742517a59a034cf578a7c43"
     "cdc5d7e82537530524f404a42043fd2fe44a43d9d65f5f7427dbe9d4c69d818f"
     "84e3d9a1f12dfe42a68fa552a0fd67383b4fe3da76cb136486e79029ca830caa"
     "c6fff7818b99fe8d1ab76dc9601179d1c2c9a610cac4ded7578d61beade34a5f"
     "7f88f3ef10e38bf294fc0a04014eb9c8b717e41e6e624cf0586de4346da4fc96"
     "0b4f892d8552558a8910661d0210bfbee81651a40d99b2e650e8a0cce89a60cb"
     "30d6";

static const char known_hk[] =
     "b61cd9a4793f342c71377e81bf8dbeb0feb4fa6e73576acbd37012a7b04cde50";
static const char known_enroll[] =
     "de34591590cb40be768d27dde4c2d759ba563f586a415a4e1d393aab020f3e91";
static const char known_shares[] =
     "f47d47abf90d3b00336a63276be4c872bba7a5b2e541f933a4c6ad9d0855c938";
static const char known_dealt[] =
     "520bc8b56fa8581df336a1e038b995af8a6fef3b63eb5f8f610fa03a386c6aad";
static const char known_setup[] =
     "6818a06bab6ebf661689e7c07c1477c432ba48bfd214e644de06bda4c8b9fd46";
static const char known_model[] =
     "54a1ef987866f0782ac422d5b0e4cee7751541c721f82811f72a81b0b76ff10a";
static const char known_he[] =
     "459089039969b940cef215f31bfccf00d50be16367626637033e768198297ba5";
static const char known_key[] =
     "ea7e10ed394cbff2e1ddbfacf894a2452bc7c03660f3120a3a8f734019dea701";
static const char known_sealed[] =
     "866c0afc52d7967d22baf3c469a261d328a96d9c46dabf3b1ebb7a3bb5ffd7e1";
static const char known_opened[] =
     "a514a6912a39a23df4dde67838794eed606979ae275accf20f34667cb78d46b8";
static const char known_ctx[] =
     "e14a1985439f4d3b0bf2c1837b1d3d7a6ba11605514f13e40bcffc84b653480b";
static const char known_ctx2[] =
     "ad19971290722d6bd74ee7385b99f62fcffe28ada0ac5aa72bc85ccad3873271";
static const char known_dig[] =
     "9f92760e59053449d9e0017d4da942accafb93526a2c82fd9d875769abff3ed0";
static const char known_end[] =
     "d9ca27ce03a34178718779317952c74a78527069d12d5509b1e55672f6cdbda8";
static const char known_stmt[] =
     "b37813174a3f48fff80db7c01c7c7a256a2ddb41f70589b90eae7fd96d5f5aa8";
static const char known_envelope[] =
     "444146310894c4ed083e00cc84bf3879fc267dbfd00900000002011100000003"
     "000000a35a6ac896baabbb0a1fb2fee285464d821ad4dbe708e5709e41324544"
     "1419a32000000000000000e14a1985439f4d3b0bf2c1837b1d3d7a6ba1160551"
     "4f13e40bcffc84b653480b64bb8b4b69e8afc01caf2539eca52e82da898868a0"
     "9e302b2b91d0859ddfa5e340ea33f0cd71f8bafbc0454f285cab6bfbe2d9c0a4"
     "c0b69b6b7681bc0d479406";
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
static const char known_config_bytes[] =
     "4441464302021103220433054406550307010000090800001000000040ab020c"
     "660d77ef0e000056341200efcdab890000000001000010020000200300003004"
     "0000400500005009536f6d652e6d2d5f39020100007419fdeb5f5ddd095e28af"
     "e0afff89497befb885b1ce5e26eb70967327a24ef0c64c5815e734722d4212ac"
     "ac64ffdefb74c163d61c5e64004298356078e1bce4563a1f95492393be95dd30"
     "d4745553e804b647a5f742517a59a034cf578a7c43cdc5d7e82537530524f404"
     "a42043fd2fe44a43d9d65f5f7427dbe9d4c69d818f84e3d9a1f12dfe42a68fa5"
     "52a0fd67383b4fe3da76cb136486e79029ca830caac6fff7818b99fe8d1ab76d"
     "c9601179d1c2c9a610cac4ded7578d61beade34a5f7f88f3ef10e38bf294fc0a"
     "04014eb9c8b717e41e6e624cf0586de4346da4fc960b4f892d8552558a891066"
     "1d0210bfbee81651a40d99b2e650e8a0cce89a60cb30d6";
static const char known_config_digest[] =
     "e592bee25f63fb1167713918f2cdec7249b4999373a4b6c9a8ce547e7b17f285";
