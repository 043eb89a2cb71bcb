import CoreData
import Expectations
import TestSupport
import Testing

@Suite("History tokens")
struct HistoryTokenTests {
    private let token = NSPersistentHistoryToken(transactionNumbers: ["A": 3, "B": 7])

    @Test
    func `a token survives secure archiving and compares equal (CS-195)`() throws {
        let data = try NSKeyedArchiver.archivedData(withRootObject: token, requiringSecureCoding: true)
        let back = try NSKeyedUnarchiver.unarchivedObject(ofClass: NSPersistentHistoryToken.self, from: data)
        expect(back == token && back?.hash == token.hash)
        expect(back !== token)
    }

    @Test
    func `a token survives encoding, as a plain dictionary`() throws {
        let data = try JSONEncoder().encode(["token": token])
        try expectEqual(JSONDecoder().decode([String: NSPersistentHistoryToken].self, from: data)["token"], token)
        try expectEqual(JSONDecoder().decode([String: [String: Int]].self, from: data), ["token": ["A": 3, "B": 7]])
    }

    @Test
    func `a token may say which transaction a number stands for`() throws {
        let id = UUID()
        let text = "{\"A\": 3, \"B\": {\"number\": 7, \"transaction\": \"\(id.uuidString)\"}}"
        let told = try JSONDecoder().decode(NSPersistentHistoryToken.self, from: Data(text.utf8))
        expectEqual(told, token)
        let encoded = try JSONSerialization.jsonObject(with: JSONEncoder().encode(told)) as? [String: Any]
        expectEqual(encoded?["A"] as? Int, 3)
        expectEqual((encoded?["B"] as? [String: Any])?["transaction"] as? String, id.uuidString)
        let archive = try NSKeyedArchiver.archivedData(withRootObject: told, requiringSecureCoding: true)
        let back = try NSKeyedUnarchiver.unarchivedObject(ofClass: NSPersistentHistoryToken.self, from: archive)
        let again = try JSONSerialization.jsonObject(with: JSONEncoder().encode(require(back))) as? [String: Any]
        expectEqual((again?["B"] as? [String: Any])?["transaction"] as? String, id.uuidString)
    }

    @Test(arguments: ["{\"A\": {\"number\": -1}}", "{\"A\": -1}", "[1]", "{\"A\": \"x\"}", "{\"A\": 1e40}", "3"])
    func `what is no token does not decode`(_ text: String) {
        expectThrows(DecodingError.self) {
            try JSONDecoder().decode(NSPersistentHistoryToken.self, from: Data(text.utf8))
        }
    }

    @Test
    func `tokens compare store by store`() {
        let later = NSPersistentHistoryToken(transactionNumbers: ["A": 3, "B": 8])
        let other = NSPersistentHistoryToken(transactionNumbers: ["A": 4])
        expect(token.isBehind(later) && !later.isBehind(token) && !token.isBehind(token))
        expect(!token.isBehind(other) && !other.isBehind(token))
        expectEqual(token.advanced(to: other).transactionNumbers, ["A": 4, "B": 7])
        expectEqual(other.advanced(to: token), token.advanced(to: other))
        expect(token != later && token.copy() as? NSPersistentHistoryToken === token)
    }

    @Test
    func `a token may be handed to another task`() async {
        let token = token
        await expectEqual(Task.detached { token.transactionNumbers["B"] }.value, 7)
    }
}
