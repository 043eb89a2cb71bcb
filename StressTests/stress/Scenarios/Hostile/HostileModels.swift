import CoreData

/// Model files: mutated ones, and ones that must be refused for one reason.
struct HostileModels {
    private let run: Run

    init(_ run: Run) { self.run = run }

    private static let text = """
        <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
        <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" userDefinedModelVersionIdentifier="">
            <entity name="Base" isAbstract="YES"><attribute name="name" optional="YES" attributeType="String"/></entity>
            <entity name="Leaf" parentEntity="Base">
                <attribute name="count" attributeType="Integer 64" defaultValueString="0" usesScalarValueType="YES"/>
                <relationship name="owner" optional="YES" maxCount="1" deletionRule="Nullify" destinationEntity="Leaf" \
        inverseName="owned" inverseEntity="Leaf"/>
                <relationship name="owned" optional="YES" toMany="YES" deletionRule="Cascade" destinationEntity="Leaf" \
        inverseName="owner" inverseEntity="Leaf"/>
                <uniquenessConstraints><uniquenessConstraint><constraint value="name"/></uniquenessConstraint>\
        </uniquenessConstraints>
            </entity>
        </model>
        """

    /// Reads a model with changed characters.
    func readMutated(_ number: Int, _ stream: inout SeededStream) {
        read(Hostile.mutated(Self.text, &stream), number, "a mutated model", nil)
    }

    /// Reads a model that contradicts itself, or that is made to take much time or memory.
    func readWrong(_ number: Int, _ stream: inout SeededStream) {
        let size = 1 + stream.skewed(3_000)
        let wrong = stream.pick(Self.wrong(size))
        read("<model>\(wrong.body())</model>", number, "a model with \(wrong.name), size \(size)", wrong.code)
    }

    /// Reads a model with these elements.
    func read(_ number: Int, _ elements: String) { read("<model>\(elements)</model>", number, "a model", nil) }

    /// A model with one fault.
    private struct Wrong {
        let name: String
        /// The error with which it must be refused; `nil` if it may be read, or refused with any error.
        let code: CocoaError.Code?
        /// Its elements.
        ///
        /// They are made when they are needed, as some are large.
        let body: () -> String

        init(_ name: String, _ code: CocoaError.Code?, _ body: @escaping @autoclosure () -> String) {
            (self.name, self.code, self.body) = (name, code, body)
        }
    }

    /// All faulty models, for a given size.
    private static func wrong(_ size: Int) -> [Wrong] {
        let invalid = CocoaError.Code.coreData
        let corrupt = CocoaError.Code.fileReadCorruptFile
        func entity(_ name: String, _ rest: String = "", _ body: String = "") -> String {
            "<entity name=\"\(name)\" \(rest)>\(body)</entity>"
        }
        func attribute(_ name: String, _ rest: String = "attributeType=\"String\"") -> String {
            "<attribute name=\"\(name)\" optional=\"YES\" \(rest)/>"
        }
        func chain(_ first: String) -> String {
            (0..<size).map { entity("E\($0)", $0 == 0 ? first : "parentEntity=\"E\($0 - 1)\"") }.joined()
        }
        func long() -> String { String(repeating: "x", count: size * 1_000) }
        return [
            Wrong("a circle of inheritance", invalid, chain("parentEntity=\"E\(size - 1)\"")),
            Wrong("a chain of inheritance", size > 257 ? invalid : nil, chain("")),
            Wrong("a parent that is not there", invalid, entity("A", "parentEntity=\"B\"")),
            Wrong("two entities of one name", invalid, entity("A") + entity("A")),
            Wrong("two attributes of one name", invalid, entity("A", "", attribute("a") + attribute("a"))),
            Wrong(
                "an attribute declared again",
                invalid,
                entity("A", "", attribute("a")) + entity("B", "parentEntity=\"A\"", attribute("a"))
            ),
            Wrong("an entity without a name", invalid, "<entity/>"),
            Wrong(
                "a long default",
                nil,
                entity("A", "", attribute("a", "attributeType=\"String\" defaultValueString=\"\(long())\""))
            ),
            Wrong(
                "a default of another type",
                invalid,
                entity("A", "", attribute("a", "attributeType=\"Integer 16\" defaultValueString=\"\(long())\""))
            ),
            Wrong("a long name", nil, entity("A", "", attribute(long()))),
            Wrong("a type of no kind", invalid, entity("A", "", attribute("a", "attributeType=\"Quaternion\""))),
            Wrong(
                "a relationship to nowhere",
                invalid,
                entity("A", "", "<relationship name=\"r\" destinationEntity=\"B\" optional=\"YES\"/>")
            ),
            Wrong(
                "an inverse that is not there",
                invalid,
                entity(
                    "A",
                    "",
                    "<relationship name=\"r\" destinationEntity=\"A\" inverseName=\"s\" inverseEntity=\"A\"/>"
                )
            ),
            Wrong(
                "deep nesting",
                size > 31 ? corrupt : nil,
                String(repeating: "<a>", count: size) + String(repeating: "</a>", count: size)
            ),
            Wrong("elements that do not end", corrupt, String(repeating: "<a>", count: size)),
            Wrong("many empty elements", size >= 2_000 ? corrupt : nil, String(repeating: "<a/>", count: size * 100)),
            Wrong("an entity of XML", corrupt, "<!DOCTYPE m [<!ENTITY a \"\(long())\">]>" + entity("&a;&a;&a;")),
            Wrong("a reference that is not there", corrupt, entity("&a;")),
        ]
    }

    private func read(_ text: String, _ number: Int, _ name: String, _ demanded: CocoaError.Code?) {
        let url = run.folder.appendingPathComponent("contents-\(number)")
        defer { unlink(url.path) }
        guard (try? Data(text.utf8).write(to: url)) != nil else { return run.find("a model cannot be written") }
        do {
            let model = try NSManagedObjectModel(reading: url)
            _ = model.entityVersionHashesByName
            run.count("models-read")
            if let demanded { run.find("input \(number): \(name) was read, not refused with \(demanded.rawValue)") }
        } catch let error as CocoaError {
            run.count("models-refused")
            if let demanded, error.code != demanded {
                run.find("input \(number): \(name) gave \(describe(error)), not \(demanded.rawValue)")
            }
        } catch { run.find("input \(number): \(name) gave \(describe(error))") }
    }
}
