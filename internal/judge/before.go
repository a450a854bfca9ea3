package judge

import "encoding/json"

// UnmarshalJSON implements json.Unmarshaler. In results of before streams came,
// "requests" were what is "apiRequests" now.
func (s *Step) UnmarshalJSON(data []byte) error {
	type plain Step
	var before struct {
		Requests *struct {
			APIRequests
			N *int `json:"n"`
		} `json:"requests"`
	}
	if err := json.Unmarshal(data, &before); err != nil || before.Requests == nil || before.Requests.N == nil {
		return json.Unmarshal(data, (*plain)(s))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	fields["apiRequests"] = fields["requests"]
	delete(fields, "requests")
	data, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, (*plain)(s))
}
