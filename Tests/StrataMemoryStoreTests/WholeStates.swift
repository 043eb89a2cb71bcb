extension WholeStateTests {
    static let saves = #"""
        insert: reread Big 4 Crate 1 Crate 2 Crate 3 Rack 1 Rack 2
          + Crate 1 v1 code=1 home=S name=c1 place=N price=1.0 rack=3.1 seal=4.1 sign=C1 spare=3.2
          + Crate 1.marks 5.3 5.1 5.2
          + Crate 2 v1 code=2 name=c2 place=N price=2.0 rack=3.1 sign=C2
          + Crate 2.marks 5.2
          + Crate 3 v1 code=3 name=c3 place=N price=3.0 rack=3.1 sign=C3
          + Big 4 v1 code=4 name=c4 place=N price=4.0 rack=3.1 sign=C4
          + Rack 1 v1 count=4 dearest=4.0 label=N mean=2.5 wishWorth=3.0 wished=2 worth=10.0
          + Rack 1.crates 1.1 1.2 1.3 2.4
          + Rack 1.wishes 1.1 1.2
          + Rack 2 v1 count=0 label=S wishWorth=0.0 wished=0 worth=0.0
          + Seal 1 v1 crate=1.1 text=s
          + Mark 1 v1 word=x
          + Mark 1.crates 1.1
          + Mark 2 v1 word=y
          + Mark 2.crates 1.1 1.2
          + Mark 3 v1 word=z
          + Mark 3.crates 1.1
        one name: reread Crate 2
          - Crate 2 v1 code=2 name=c2 place=N price=2.0 rack=3.1 sign=C2
          + Crate 2 v2 code=2 name=two place=N price=2.0 rack=3.1 sign=TWO
        one price: reread Rack 1
          - Crate 2 v2 code=2 name=two place=N price=2.0 rack=3.1 sign=TWO
          - Rack 1 v1 count=4 dearest=4.0 label=N mean=2.5 wishWorth=3.0 wished=2 worth=10.0
          + Crate 2 v3 code=2 name=two place=N price=20.0 rack=3.1 sign=TWO
          + Rack 1 v1 count=4 dearest=20.0 label=N mean=7.0 wishWorth=21.0 wished=2 worth=28.0
        no price: reread Rack 1
          - Crate 3 v1 code=3 name=c3 place=N price=3.0 rack=3.1 sign=C3
          - Rack 1 v1 count=4 dearest=20.0 label=N mean=7.0 wishWorth=21.0 wished=2 worth=28.0
          + Crate 3 v2 code=3 name=c3 place=N rack=3.1 sign=C3
          + Rack 1 v1 count=4 dearest=20.0 label=N mean=8.333333333333334 wishWorth=21.0 wished=2 worth=25.0
        a label: reread Crate 1
          - Crate 1 v1 code=1 home=S name=c1 place=N price=1.0 rack=3.1 seal=4.1 sign=C1 spare=3.2
          - Rack 2 v1 count=0 label=S wishWorth=0.0 wished=0 worth=0.0
          + Crate 1 v1 code=1 home=SS name=c1 place=N price=1.0 rack=3.1 seal=4.1 sign=C1 spare=3.2
          + Rack 2 v2 count=0 label=SS wishWorth=0.0 wished=0 worth=0.0
        a label of four: reread Big 4 Crate 1 Crate 2 Crate 3
          - Crate 1 v1 code=1 home=SS name=c1 place=N price=1.0 rack=3.1 seal=4.1 sign=C1 spare=3.2
          - Crate 2 v3 code=2 name=two place=N price=20.0 rack=3.1 sign=TWO
          - Crate 3 v2 code=3 name=c3 place=N rack=3.1 sign=C3
          - Big 4 v1 code=4 name=c4 place=N price=4.0 rack=3.1 sign=C4
          - Rack 1 v1 count=4 dearest=20.0 label=N mean=8.333333333333334 wishWorth=21.0 wished=2 worth=25.0
          + Crate 1 v1 code=1 home=SS name=c1 place=NN price=1.0 rack=3.1 seal=4.1 sign=C1 spare=3.2
          + Crate 2 v3 code=2 name=two place=NN price=20.0 rack=3.1 sign=TWO
          + Crate 3 v2 code=3 name=c3 place=NN rack=3.1 sign=C3
          + Big 4 v1 code=4 name=c4 place=NN price=4.0 rack=3.1 sign=C4
          + Rack 1 v2 count=4 dearest=20.0 label=NN mean=8.333333333333334 wishWorth=21.0 wished=2 worth=25.0
        another rack: reread Crate 1 Rack 1 Rack 2
          - Crate 1 v1 code=1 home=SS name=c1 place=NN price=1.0 rack=3.1 seal=4.1 sign=C1 spare=3.2
          - Rack 1 v2 count=4 dearest=20.0 label=NN mean=8.333333333333334 wishWorth=21.0 wished=2 worth=25.0
          - Rack 1.crates 1.1 1.2 1.3 2.4
          - Rack 2 v2 count=0 label=SS wishWorth=0.0 wished=0 worth=0.0
          + Crate 1 v2 code=1 home=SS name=c1 place=SS price=1.0 rack=3.2 seal=4.1 sign=C1 spare=3.2
          + Rack 1 v2 count=3 dearest=20.0 label=NN mean=12.0 wishWorth=21.0 wished=2 worth=24.0
          + Rack 1.crates 2.4 1.3 1.2
          + Rack 2 v2 count=1 dearest=1.0 label=SS mean=1.0 wishWorth=0.0 wished=0 worth=1.0
          + Rack 2.crates 1.1
        an order:
          - Rack 1 v2 count=3 dearest=20.0 label=NN mean=12.0 wishWorth=21.0 wished=2 worth=24.0
          - Rack 1.crates 2.4 1.3 1.2
          + Rack 1 v3 count=3 dearest=20.0 label=NN mean=12.0 wishWorth=21.0 wished=2 worth=24.0
          + Rack 1.crates 1.2 1.3 2.4
        marks:
          - Crate 1.marks 5.3 5.1 5.2
          - Mark 3.crates 1.1
          + Crate 1.marks 5.2 5.1
          + Big 4.marks 5.3
          + Mark 3.crates 2.4
        a wish moves: reread Rack 1 Rack 2
          - Rack 1 v3 count=3 dearest=20.0 label=NN mean=12.0 wishWorth=21.0 wished=2 worth=24.0
          - Rack 1.wishes 1.1 1.2
          - Rack 2 v2 count=1 dearest=1.0 label=SS mean=1.0 wishWorth=0.0 wished=0 worth=1.0
          + Rack 1 v3 count=3 dearest=20.0 label=NN mean=12.0 wishWorth=1.0 wished=1 worth=24.0
          + Rack 1.wishes 1.1
          + Rack 2 v2 count=1 dearest=1.0 label=SS mean=1.0 wishWorth=24.0 wished=2 worth=1.0
          + Rack 2.wishes 1.2 2.4
        a wish goes: reread Rack 1
          - Rack 1 v3 count=3 dearest=20.0 label=NN mean=12.0 wishWorth=1.0 wished=1 worth=24.0
          - Rack 1.wishes 1.1
          + Rack 1 v3 count=3 dearest=20.0 label=NN mean=12.0 wishWorth=0.0 wished=0 worth=24.0
        a wished price: reread Rack 1 Rack 2
          - Big 4 v1 code=4 name=c4 place=NN price=4.0 rack=3.1 sign=C4
          - Rack 1 v3 count=3 dearest=20.0 label=NN mean=12.0 wishWorth=0.0 wished=0 worth=24.0
          - Rack 2 v2 count=1 dearest=1.0 label=SS mean=1.0 wishWorth=24.0 wished=2 worth=1.0
          + Big 4 v2 code=4 name=c4 place=NN price=40.0 rack=3.1 sign=C4
          + Rack 1 v3 count=3 dearest=40.0 label=NN mean=30.0 wishWorth=0.0 wished=0 worth=60.0
          + Rack 2 v2 count=1 dearest=1.0 label=SS mean=1.0 wishWorth=60.0 wished=2 worth=1.0
        no spare: reread Crate 1
          - Crate 1 v2 code=1 home=SS name=c1 place=SS price=1.0 rack=3.2 seal=4.1 sign=C1 spare=3.2
          + Crate 1 v3 code=1 home=NN name=c1 place=SS price=1.0 rack=3.2 seal=4.1 sign=C1 spare=3.1
        conflicts: code of [-1] is that of 2, code of [-2, -3] is that of each other, version 1 of 3 is 2, version 1 of 7 is gone, version 9 of 1 is 3
        a crate that is wished for goes: reread Rack 1 Rack 2
          - Big 4 v2 code=4 name=c4 place=NN price=40.0 rack=3.1 sign=C4
          - Big 4.marks 5.3
          - Rack 1 v3 count=3 dearest=40.0 label=NN mean=30.0 wishWorth=0.0 wished=0 worth=60.0
          - Rack 1.crates 1.2 1.3 2.4
          - Rack 2 v2 count=1 dearest=1.0 label=SS mean=1.0 wishWorth=60.0 wished=2 worth=1.0
          - Rack 2.wishes 1.2 2.4
          - Mark 3.crates 2.4
          + Rack 1 v3 count=2 dearest=20.0 label=NN mean=20.0 wishWorth=0.0 wished=0 worth=20.0
          + Rack 1.crates 1.2 1.3
          + Rack 2 v2 count=1 dearest=1.0 label=SS mean=1.0 wishWorth=20.0 wished=1 worth=1.0
          + Rack 2.wishes 1.2
        a rack with crates goes: reread Crate 2 Crate 3
          - Crate 2 v3 code=2 name=two place=NN price=20.0 rack=3.1 sign=TWO
          - Crate 3 v2 code=3 name=c3 place=NN rack=3.1 sign=C3
          - Rack 1 v3 count=2 dearest=20.0 label=NN mean=20.0 wishWorth=0.0 wished=0 worth=20.0
          - Rack 1.crates 1.2 1.3
          + Crate 2 v4 code=2 name=two price=20.0 sign=TWO
          + Crate 3 v3 code=3 name=c3 sign=C3
        a mark goes: reread Crate 1
          - Crate 1 v3 code=1 home=NN name=c1 place=SS price=1.0 rack=3.2 seal=4.1 sign=C1 spare=3.1
          - Crate 1.marks 5.2 5.1
          - Crate 2.marks 5.2
          - Mark 2 v1 word=y
          - Mark 2.crates 1.1 1.2
          + Crate 1 v3 code=1 name=c1 place=SS price=1.0 rack=3.2 seal=4.1 sign=C1 spare=3.1
          + Crate 1.marks 5.1
        the rack is back: reread Rack 1
          + Rack 1 v6 count=0 label=again wishWorth=0.0 wished=0 worth=0.0
        and twice: version 5 of 1 is 6
        the owner of wishes goes: reread Crate 1
          - Crate 1 v3 code=1 name=c1 place=SS price=1.0 rack=3.2 seal=4.1 sign=C1 spare=3.1
          - Rack 2 v2 count=1 dearest=1.0 label=SS mean=1.0 wishWorth=20.0 wished=1 worth=1.0
          - Rack 2.crates 1.1
          - Rack 2.wishes 1.2
          + Crate 1 v4 code=1 home=again name=c1 price=1.0 seal=4.1 sign=C1 spare=3.1
        copies:
          + Mark 12 v1 word=copy
        new keys:
          + Crate 5 v1
          + Big 6 v1
          + Mark 41 v1
        """#

    static let batches = #"""
        insert: reread Big 5 Crate 1 Crate 2 Crate 3 Crate 4 Rack 1 Rack 2
          + Crate 1 v1 code=1 name=c1 place=N price=1.0 rack=3.1 seal=4.1 sign=C1 size=1
          + Crate 1.marks 5.2 5.1
          + Crate 1.parts 6.1 6.2
          + Crate 2 v1 code=2 name=c2 place=N price=2.0 rack=3.1 seal=4.2 sign=C2 size=2
          + Crate 3 v1 code=3 name=c3 place=N price=3.0 rack=3.1 sign=C3 size=3
          + Crate 3.marks 5.1
          + Crate 4 v1 code=4 name=c4 place=N price=4.0 rack=3.1 sign=C4 size=4
          + Big 5 v1 code=5 name=c5 place=N price=5.0 rack=3.1 sign=C5 size=5
          + Big 5.parts 6.3
          + Rack 1 v1 count=5 dearest=5.0 label=N mean=3.0 wishWorth=0.0 wished=0 worth=15.0
          + Rack 1.crates 2.5 1.3 1.1 1.2 1.4
          + Rack 2 v1 count=0 label=S wishWorth=2.0 wished=1 worth=0.0
          + Rack 2.wishes 1.2
          + Seal 1 v1 crate=1.1 text=s0
          + Seal 2 v1 crate=1.2 text=s1
          + Mark 1 v1 word=x
          + Mark 1.crates 1.1 1.3
          + Mark 2 v1 word=y
          + Mark 2.crates 1.1
          + Part 1 v1 crate=1.1 number=1 owner=7.1
          + Part 2 v1 crate=1.1 number=2 owner=7.1
          + Part 3 v1 crate=2.5 number=3 owner=7.1
          + Owner 1 v1
          + Owner 1.belongings 6.1 6.2 6.3
        no row: 0
        names: 2, changed Big ["name"] [5], changed Crate ["name"] [4]
          - Crate 4 v1 code=4 name=c4 place=N price=4.0 rack=3.1 sign=C4 size=4
          - Big 5 v1 code=5 name=c5 place=N price=5.0 rack=3.1 sign=C5 size=5
          + Crate 4 v2 code=4 name=dear place=N price=4.0 rack=3.1 sign=DEAR size=4
          + Big 5 v2 code=5 name=dear place=N price=5.0 rack=3.1 sign=DEAR size=5
        of sub-entities: 1, changed Big ["weight"] [5]
          - Big 5 v2 code=5 name=dear place=N price=5.0 rack=3.1 sign=DEAR size=5
          + Big 5 v3 code=5 name=dear place=N price=5.0 rack=3.1 sign=DEAR size=5 weight=1.5
        computed: 2, changed Crate ["code", "price", "size"] [1, 2], related Rack [] [1, 2]
          - Crate 1 v1 code=1 name=c1 place=N price=1.0 rack=3.1 seal=4.1 sign=C1 size=1
          - Crate 2 v1 code=2 name=c2 place=N price=2.0 rack=3.1 seal=4.2 sign=C2 size=2
          - Rack 1 v1 count=5 dearest=5.0 label=N mean=3.0 wishWorth=0.0 wished=0 worth=15.0
          - Rack 2 v1 count=0 label=S wishWorth=2.0 wished=1 worth=0.0
          + Crate 1 v2 name=c1 place=N price=2.0 rack=3.1 seal=4.1 sign=C1 size=2
          + Crate 2 v2 name=c2 place=N price=4.0 rack=3.1 seal=4.2 sign=C2 size=4
          + Rack 1 v1 count=5 dearest=5.0 label=N mean=3.6 wishWorth=0.0 wished=0 worth=18.0
          + Rack 2 v1 count=0 label=S wishWorth=4.0 wished=1 worth=0.0
        too large: 134070 A batch update of Crate is refused: a value that was worked out does not fit into its attribute.
        no number: 134070 A batch update of Crate is refused: a value that was worked out is not a number, which no store keeps.
        moved: 2, changed Crate ["rack"] [1, 3], followed Rack ["crates"] [1, 2]
          - Crate 1 v2 name=c1 place=N price=2.0 rack=3.1 seal=4.1 sign=C1 size=2
          - Crate 3 v1 code=3 name=c3 place=N price=3.0 rack=3.1 sign=C3 size=3
          - Rack 1 v1 count=5 dearest=5.0 label=N mean=3.6 wishWorth=0.0 wished=0 worth=18.0
          - Rack 1.crates 2.5 1.3 1.1 1.2 1.4
          - Rack 2 v1 count=0 label=S wishWorth=4.0 wished=1 worth=0.0
          + Crate 1 v3 name=c1 place=S price=2.0 rack=3.2 seal=4.1 sign=C1 size=2
          + Crate 3 v2 code=3 name=c3 place=S price=3.0 rack=3.2 sign=C3 size=3
          + Rack 1 v2 count=3 dearest=5.0 label=N mean=4.333333333333333 wishWorth=0.0 wished=0 worth=13.0
          + Rack 1.crates 2.5 1.2 1.4
          + Rack 2 v2 count=2 dearest=3.0 label=S mean=2.5 wishWorth=4.0 wished=1 worth=5.0
          + Rack 2.crates 1.1 1.3
        moved to where it is: 1, changed Crate ["rack"] [3], followed Rack ["crates"] [2]
          - Crate 3 v2 code=3 name=c3 place=S price=3.0 rack=3.2 sign=C3 size=3
          - Rack 2 v2 count=2 dearest=3.0 label=S mean=2.5 wishWorth=4.0 wished=1 worth=5.0
          + Crate 3 v3 code=3 name=c3 place=S price=3.0 rack=3.2 sign=C3 size=3
          + Rack 2 v3 count=2 dearest=3.0 label=S mean=2.5 wishWorth=4.0 wished=1 worth=5.0
        moved back: 1, changed Crate ["rack"] [3], followed Rack ["crates"] [1, 2]
          - Crate 3 v3 code=3 name=c3 place=S price=3.0 rack=3.2 sign=C3 size=3
          - Rack 1 v2 count=3 dearest=5.0 label=N mean=4.333333333333333 wishWorth=0.0 wished=0 worth=13.0
          - Rack 1.crates 2.5 1.2 1.4
          - Rack 2 v3 count=2 dearest=3.0 label=S mean=2.5 wishWorth=4.0 wished=1 worth=5.0
          - Rack 2.crates 1.1 1.3
          + Crate 3 v4 code=3 name=c3 place=N price=3.0 rack=3.1 sign=C3 size=3
          + Rack 1 v3 count=4 dearest=5.0 label=N mean=4.0 wishWorth=0.0 wished=0 worth=16.0
          + Rack 1.crates 2.5 1.2 1.4 1.3
          + Rack 2 v4 count=1 dearest=2.0 label=S mean=2.0 wishWorth=4.0 wished=1 worth=2.0
          + Rack 2.crates 1.1
        out of the rack: 1, changed Crate ["rack"] [1], followed Rack ["crates"] [2]
          - Crate 1 v3 name=c1 place=S price=2.0 rack=3.2 seal=4.1 sign=C1 size=2
          - Rack 2 v4 count=1 dearest=2.0 label=S mean=2.0 wishWorth=4.0 wished=1 worth=2.0
          - Rack 2.crates 1.1
          + Crate 1 v4 name=c1 price=2.0 seal=4.1 sign=C1 size=2
          + Rack 2 v5 count=0 label=S wishWorth=4.0 wished=1 worth=0.0
        into the rack again: 1, changed Crate ["rack"] [1], followed Rack ["crates"] [1]
          - Crate 1 v4 name=c1 price=2.0 seal=4.1 sign=C1 size=2
          - Rack 1 v3 count=4 dearest=5.0 label=N mean=4.0 wishWorth=0.0 wished=0 worth=16.0
          - Rack 1.crates 2.5 1.2 1.4 1.3
          + Crate 1 v5 name=c1 place=N price=2.0 rack=3.1 seal=4.1 sign=C1 size=2
          + Rack 1 v4 count=5 dearest=5.0 label=N mean=3.6 wishWorth=0.0 wished=0 worth=18.0
          + Rack 1.crates 2.5 1.2 1.4 1.3 1.1
        to a rack that is gone: 133000 "rack" of Crate cannot be set to p9 of Rack: there is no such object any more.
        a seal moves: 1, changed Seal ["crate"] [1], followed Crate ["seal"] [1]
          - Crate 1 v5 name=c1 place=N price=2.0 rack=3.1 seal=4.1 sign=C1 size=2
          - Seal 1 v1 crate=1.1 text=s0
          + Crate 1 v6 name=c1 place=N price=2.0 rack=3.1 sign=C1 size=2
          + Seal 1 v2 crate=1.3 text=s0
        one code: 133021 A batch update of Crate is refused: two rows would have the same values of code, which must be unique.
        a label: 1, changed Rack ["label"] [1], related Big [] [5], related Crate [] [1, 2, 3, 4]
          - Crate 1 v6 name=c1 place=N price=2.0 rack=3.1 sign=C1 size=2
          - Crate 2 v2 name=c2 place=N price=4.0 rack=3.1 seal=4.2 sign=C2 size=4
          - Crate 3 v4 code=3 name=c3 place=N price=3.0 rack=3.1 sign=C3 size=3
          - Crate 4 v2 code=4 name=dear place=N price=4.0 rack=3.1 sign=DEAR size=4
          - Big 5 v3 code=5 name=dear place=N price=5.0 rack=3.1 sign=DEAR size=5 weight=1.5
          - Rack 1 v4 count=5 dearest=5.0 label=N mean=3.6 wishWorth=0.0 wished=0 worth=18.0
          + Crate 1 v6 name=c1 place=NN price=2.0 rack=3.1 sign=C1 size=2
          + Crate 2 v2 name=c2 place=NN price=4.0 rack=3.1 seal=4.2 sign=C2 size=4
          + Crate 3 v4 code=3 name=c3 place=NN price=3.0 rack=3.1 sign=C3 size=3
          + Crate 4 v2 code=4 name=dear place=NN price=4.0 rack=3.1 sign=DEAR size=4
          + Big 5 v3 code=5 name=dear place=NN price=5.0 rack=3.1 sign=DEAR size=5 weight=1.5
          + Rack 1 v5 count=5 dearest=5.0 label=NN mean=3.6 wishWorth=0.0 wished=0 worth=18.0
        insert: 2, followed Rack ["crates"] [2], new Crate [] [6, 7]
          - Rack 2 v5 count=0 label=S wishWorth=4.0 wished=1 worth=0.0
          + Crate 6 v1 name=n1 place=S price=1.0 rack=3.2 sign=N1
          + Crate 7 v1 code=n name=n2 sign=N2
          + Rack 2 v6 count=1 dearest=1.0 label=S mean=1.0 wishWorth=4.0 wished=1 worth=1.0
          + Rack 2.crates 1.6
        clashes: clashes in Crate, 0 ["code"] a 7 [], 2 ["code"] c new []
        skips: 1, new Crate [] [8]
          + Crate 8 v1 code=r name=b sign=B
        updates: 3, changed Crate ["code", "price"] [7], changed Crate ["code", "rack"] [8], followed Rack ["crates"] [1], new Crate [] [9]
          - Crate 7 v1 code=n name=n2 sign=N2
          - Crate 8 v1 code=r name=b sign=B
          - Rack 1 v5 count=5 dearest=5.0 label=NN mean=3.6 wishWorth=0.0 wished=0 worth=18.0
          - Rack 1.crates 2.5 1.2 1.4 1.3 1.1
          + Crate 7 v2 code=n name=n2 price=7.0 sign=N2
          + Crate 8 v2 code=r name=b place=NN rack=3.1 sign=B
          + Crate 9 v1 code=t name=tt sign=TT
          + Rack 1 v6 count=6 dearest=5.0 label=NN mean=3.6 wishWorth=0.0 wished=0 worth=18.0
          + Rack 1.crates 2.5 1.2 1.4 1.3 1.1 1.8
        replaces: 2, changed Crate ["code", "home", "name", "place", "price", "rack", "seal", "sign", "size", "spare"] [7, 8], followed Rack ["crates"] [1]
          - Crate 7 v2 code=n name=n2 price=7.0 sign=N2
          - Crate 8 v2 code=r name=b place=NN rack=3.1 sign=B
          - Rack 1 v6 count=6 dearest=5.0 label=NN mean=3.6 wishWorth=0.0 wished=0 worth=18.0
          - Rack 1.crates 2.5 1.2 1.4 1.3 1.1 1.8
          + Crate 7 v3 code=n size=8
          + Crate 8 v3 code=r
          + Rack 1 v7 count=5 dearest=5.0 label=NN mean=3.6 wishWorth=0.0 wished=0 worth=18.0
          + Rack 1.crates 2.5 1.2 1.4 1.3 1.1
        misfits: clashes in Big, 0 ["code"]  7 ["weight"]
        no such rack: 133000 "rack" of Crate cannot be set to p9 of Rack: there is no such object any more.
        no number: 134070 A batch insert of Crate is refused: the value of "price" is not a number, which no store keeps.
        a rack with crates: 1600 A batch delete is refused: "crates" of Rack denies the deletion of p1 as long as it has objects that are not deleted too.
        of what is wished for, with its parts: 1, deleted Crate [] [2], followed Rack ["crates"] [1], followed Seal ["crate"] [2], related Rack [] [2]
          - Crate 2 v2 name=c2 place=NN price=4.0 rack=3.1 seal=4.2 sign=C2 size=4
          - Rack 1 v7 count=5 dearest=5.0 label=NN mean=3.6 wishWorth=0.0 wished=0 worth=18.0
          - Rack 1.crates 2.5 1.2 1.4 1.3 1.1
          - Rack 2 v6 count=1 dearest=1.0 label=S mean=1.0 wishWorth=4.0 wished=1 worth=1.0
          - Rack 2.wishes 1.2
          - Seal 2 v1 crate=1.2 text=s1
          + Rack 1 v8 count=4 dearest=5.0 label=NN mean=3.5 wishWorth=0.0 wished=0 worth=14.0
          + Rack 1.crates 2.5 1.4 1.3 1.1
          + Rack 2 v6 count=1 dearest=1.0 label=S mean=1.0 wishWorth=0.0 wished=0 worth=1.0
          + Seal 2 v2 text=s1
        an owner of what needs one: 1570 A batch delete is refused: "owner" of p1 of Part would become nil, which it must not. Delete these objects first, or let "belongings" of Owner cascade.
        with parts: 5, deleted Big [] [5], deleted Crate [] [1], deleted Part [] [1, 2, 3], followed Rack ["crates"] [1], related Mark ["crates"] [1, 2], related Owner ["belongings"] [1]
          - Crate 1 v6 name=c1 place=NN price=2.0 rack=3.1 sign=C1 size=2
          - Crate 1.marks 5.2 5.1
          - Crate 1.parts 6.1 6.2
          - Big 5 v3 code=5 name=dear place=NN price=5.0 rack=3.1 sign=DEAR size=5 weight=1.5
          - Big 5.parts 6.3
          - Rack 1 v8 count=4 dearest=5.0 label=NN mean=3.5 wishWorth=0.0 wished=0 worth=14.0
          - Rack 1.crates 2.5 1.4 1.3 1.1
          - Mark 1.crates 1.1 1.3
          - Mark 2.crates 1.1
          - Part 1 v1 crate=1.1 number=1 owner=7.1
          - Part 2 v1 crate=1.1 number=2 owner=7.1
          - Part 3 v1 crate=2.5 number=3 owner=7.1
          - Owner 1.belongings 6.1 6.2 6.3
          + Rack 1 v9 count=2 dearest=4.0 label=NN mean=3.5 wishWorth=0.0 wished=0 worth=7.0
          + Rack 1.crates 1.4 1.3
          + Mark 1.crates 1.3
        a mark: 1, deleted Mark [] [1], followed Crate ["marks"] [3]
          - Crate 3 v4 code=3 name=c3 place=NN price=3.0 rack=3.1 sign=C3 size=3
          - Crate 3.marks 5.1
          - Mark 1 v1 word=x
          - Mark 1.crates 1.3
          + Crate 3 v5 code=3 name=c3 place=NN price=3.0 rack=3.1 sign=C3 size=3
        nothing: 0
        a spare: reread Crate 3
          - Crate 3 v5 code=3 name=c3 place=NN price=3.0 rack=3.1 sign=C3 size=3
          + Crate 3 v6 code=3 home=S name=c3 place=NN price=3.0 rack=3.1 sign=C3 size=3 spare=3.2
        no crate in it: 1, changed Crate ["rack"] [6], followed Rack ["crates"] [2]
          - Crate 6 v1 name=n1 place=S price=1.0 rack=3.2 sign=N1
          - Rack 2 v6 count=1 dearest=1.0 label=S mean=1.0 wishWorth=0.0 wished=0 worth=1.0
          - Rack 2.crates 1.6
          + Crate 6 v2 name=n1 price=1.0 sign=N1
          + Rack 2 v7 count=0 label=S wishWorth=0.0 wished=0 worth=0.0
        a spare rack: 1600 A batch delete is refused: "spare" of p3 of Crate leads to an object that would be deleted, and has no inverse, so no delete rule looks after it. Clear it first, or give it an inverse.
        all crates: 6, deleted Crate [] [3, 4, 6, 7, 8, 9], followed Rack ["crates"] [1], followed Seal ["crate"] [1]
          - Crate 3 v6 code=3 home=S name=c3 place=NN price=3.0 rack=3.1 sign=C3 size=3 spare=3.2
          - Crate 4 v2 code=4 name=dear place=NN price=4.0 rack=3.1 sign=DEAR size=4
          - Crate 6 v2 name=n1 price=1.0 sign=N1
          - Crate 7 v3 code=n size=8
          - Crate 8 v3 code=r
          - Crate 9 v1 code=t name=tt sign=TT
          - Rack 1 v9 count=2 dearest=4.0 label=NN mean=3.5 wishWorth=0.0 wished=0 worth=7.0
          - Rack 1.crates 1.4 1.3
          - Seal 1 v2 crate=1.3 text=s0
          + Rack 1 v10 count=0 label=NN wishWorth=0.0 wished=0 worth=0.0
          + Seal 1 v3 text=s0
        all racks: 2, deleted Rack [] [1, 2]
          - Rack 1 v10 count=0 label=NN wishWorth=0.0 wished=0 worth=0.0
          - Rack 2 v7 count=0 label=S wishWorth=0.0 wished=0 worth=0.0
        """#
}
